#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/flags.h"
#include "base/status.h"
#include "ps/parameter_server.h"

namespace edl::ps {

// The flags of the verb `ps`.
FlagTable PsFlags();

// The parsed command line of `elasticdl ps`.
struct PsConfig {
  ServerOptions server;
  int http_port = -1;                     // -1: no /metrics
  bool metrics_without_token = false;     // /metrics needs no token
  std::string job_name;                   // in metrics; empty: not part of a job
  std::chrono::seconds leave_timeout{0};  // after SIGTERM, until the master has saved
  bool help = false;                      // --help was given; nothing else is set
};

// InvalidArgument: a flag is invalid; the message names the flag and what to give instead.
Result<PsConfig> ParsePsFlags(std::vector<std::string> arguments);

}  // namespace edl::ps
