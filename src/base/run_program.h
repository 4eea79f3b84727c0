#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace edl {

struct Program {
  std::vector<std::string> command;      // its name, found as a shell finds it, and its arguments
  std::vector<std::string> environment;  // "NAME=value"
  // What it reads; none: what this process would.
  std::optional<std::string> input;
};

// How a program ended that was run to its end.
struct ProgramEnd {
  int code = 0;            // 128 + signal for one that a signal ended
  std::string output;      // the first megabytes
  std::string complaints;  // what it wrote to standard error
};

// Runs a program and waits for its end. A failure is that of starting it.
Result<ProgramEnd> RunProgram(Program program);

}  // namespace edl
