#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "ps/parameter_server.h"

namespace edl::ps {

// An HTTP server with /metrics, in the text format of Prometheus, and /healthz. Runs until it is
// destroyed. Thread-safe.
class MetricsServer {
 public:
  // `server` outlives it. Port 0: any free port. If `token` is not empty, /metrics requires it.
  // Unavailable: the port is in use.
  static Result<std::unique_ptr<MetricsServer>> Start(ParameterServer& server,
                                                      const std::string& host, int port,
                                                      const std::string& token);
  virtual ~MetricsServer() = default;

  virtual int port() const = 0;
};

}  // namespace edl::ps
