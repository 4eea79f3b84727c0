#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/flags.h"
#include "base/status.h"
#include "ps/server.h"

namespace edl::ps {

// The flags of the verb `ps`.
FlagTable PsFlags();

// What a parameter server was started with.
struct PsConfig {
  ServerOptions server;
  int http_port = -1;  // -1: no /metrics
  std::chrono::seconds leave_timeout{0};
  bool help = false;  // the user asked for the help; nothing else is set
};

// InvalidArgument names the flag that is wrong and what to give instead.
Result<PsConfig> ParsePsFlags(std::vector<std::string> arguments);

}  // namespace edl::ps
