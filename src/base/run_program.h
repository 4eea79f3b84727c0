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

enum class OutputStream { kStdout, kStderr };

struct Program {
  std::vector<std::string> command;      // its name, found as a shell finds it, and its arguments
  std::vector<std::string> environment;  // "NAME=value"
  // What the program reads from standard input; nullopt: it inherits standard input.
  std::optional<std::string> input = {};
  // Called with each piece of output as the program writes it.
  std::function<void(std::string_view text, OutputStream stream)> on_output = {};
  // A signalfd, or -1. Signals that arrive there are forwarded to the program's process group,
  // which is then its own, so that the terminal sends it none. A program that does not exit within
  // `timeout` gets SIGTERM, and after another `timeout` SIGKILL.
  int signals = -1;
  std::chrono::milliseconds timeout{5000};
};

// How a program ended, and what it wrote.
struct ProgramEnd {
  int code = 0;             // 128 + signal if a signal ended the program
  std::string output;       // the first megabytes
  std::string stderr_text;  // also the first megabytes
  int interrupted_by = 0;   // the last signal that was forwarded; 0: none
};

// Runs a program and waits for its end. Fails only if the program cannot be started; a program that
// exits with an error is a ProgramEnd with its code.
Result<ProgramEnd> RunProgram(Program program);

// The file that a shell would run for `name`, searched for in `path`, the value of $PATH. A name
// with a slash is a path, and is not searched for. nullopt: not found.
std::optional<std::filesystem::path> FindProgram(std::string_view name, std::string_view path);

}  // namespace edl
