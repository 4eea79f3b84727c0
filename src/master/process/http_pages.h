#pragma once

#include <memory>
#include <string>

#include "http/pages.h"

#include "base/status.h"
#include "master/service/loop.h"

namespace edl::master {

struct HttpOptions {
  std::string host;   // empty: all addresses
  int port = 0;       // 0: any free port
  std::string token;  // that /metrics requires; empty: none
  std::string job_name;
};

// Starts the master's HTTP server, with /metrics and /healthz. A page that needs the loop is
// answered with 503 if the loop does not come to it within two seconds. `loop` outlives the server.
// Unavailable: the port is in use.
Result<std::unique_ptr<http::PageServer>> StartPages(Loop& loop, const HttpOptions& options);

}  // namespace edl::master
