#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/status.h"

namespace edl::http {

// The answer to a request.
struct Page {
  int status = 200;
  std::string text;
  std::string type = "text/plain";
};

// What a page may depend on.
struct PageRequest {
  // Headers; empty if the request has none.
  std::string authorization;
  std::string accept;
};

// Called on any thread, and by several at the same time.
using MakePage = std::function<Page(const PageRequest&)>;

// An HTTP server with a few small pages, such as /metrics and /healthz. It serves GET requests and
// runs until it is destroyed. A connection ends after its request or after a timeout; those above a
// limit of 64 are closed at once.
//
// Thread-safe.
class PageServer {
 public:
  struct Options {
    std::string host;  // empty: all addresses of this machine, of IPv4 and IPv6
    int port = 0;      // 0: any free port
    std::string flag;  // for the error: the flag that sets the port
    // From the start of a connection to the end of the answer.
    std::chrono::milliseconds timeout{5'000};
  };

  // `pages` by path. Unavailable: the port is in use, or this machine does not
  // have the address `host`.
  static Result<std::unique_ptr<PageServer>> Start(const Options& options,
                                                   const std::map<std::string, MakePage>& pages);
  virtual ~PageServer() = default;

  virtual int port() const = 0;
};

}  // namespace edl::http
