#pragma once

#include <memory>
#include <string>

#include "http/pages.h"
#include "metrics/exposition.h"

#include "base/status.h"
#include "ps/parameter_server.h"

namespace edl::ps {

// Starts an HTTP server with /metrics and /healthz. `server` outlives it. Port 0: any free port. If
// `token` is not empty, /metrics requires it. Unavailable: the port is in use, or this machine does
// not have the address `host`.
Result<std::unique_ptr<http::PageServer>> StartMetricsServer(ParameterServer& server,
                                                             const std::string& host, int port,
                                                             const std::string& token,
                                                             const metrics::Labels& process_labels);

}  // namespace edl::ps
