#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace edl {

struct Program {
  std::vector<std::string> command;      // its name, found as a shell finds it, and its arguments
  std::vector<std::string> environment;  // "NAME=value"
  // What it reads; none: what this process would.
  std::optional<std::string> input = {};
  // Hears what it writes while it writes it; `is_stderr`: to standard error.
  std::function<void(std::string_view text, bool is_stderr)> heard = {};
  // A signalfd: its signals are handed on to the program and to all that it started, which get none
  // from the terminal. What does not end by them is told SIGTERM, then SIGKILL. -1: none.
  int signals = -1;
  std::chrono::milliseconds timeout{5000};  // between one of these signals and the next
};

// How a program ended that was run to its end.
struct ProgramEnd {
  int code = 0;             // 128 + signal for one that a signal ended
  std::string output;       // the first megabytes
  std::string stderr_text;  // what it wrote to standard error
  int interrupted_by = 0;   // the last signal that was handed on
};

// Runs a program and waits for its end. A failure is that of starting it.
Result<ProgramEnd> RunProgram(Program program);

// The file that a shell would run for `name`; none: there is no such program. `path` is $PATH.
std::optional<std::filesystem::path> FindProgram(std::string_view name, std::string_view path);

}  // namespace edl
