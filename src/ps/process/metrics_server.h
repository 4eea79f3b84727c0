#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "ps/server.h"

namespace edl::ps {

// Serves /metrics, in the form that Prometheus reads, and /healthz over HTTP until it is destroyed.
// Thread-safe.
class MetricsServer {
 public:
  // `server` outlives it. Port 0: any free one. With a token, /metrics asks for it. Unavailable:
  // the port is taken.
  static Result<std::unique_ptr<MetricsServer>> Start(Server& server, const std::string& host,
                                                      int port, const std::string& token);
  virtual ~MetricsServer() = default;

  virtual int port() const = 0;
};

}  // namespace edl::ps
