#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "kube/config.h"

namespace edl::kube {

struct Request {
  std::string method = "GET";
  std::string path;  // with its query: "/api/v1/pods?limit=500"
  std::string body;
  std::string content_type = "application/json";
  std::vector<std::string> headers;  // "Name: value", in addition to the default headers
  // Timeout from the call to the last byte. 0: none, for watches and logs.
  std::chrono::milliseconds timeout{30'000};
  // A stream that receives nothing for this long fails: the peer may have disappeared without
  // closing the connection. 0: no limit.
  std::chrono::milliseconds silence{0};
  // Sends the request on a new connection. On a reused connection, HTTP may send the request a
  // second time if the server closes the connection at that moment.
  bool once = false;
};

struct Response {
  int status = 0;  // HTTP status code
  std::string body;
  std::string retry_after;            // the header as the server sent it
  std::vector<std::string> warnings;  // Warning headers
};

// An HTTP client for one API server, with one connection pool for all callers.
//
// Thread-safe. One thread of the transport does all socket I/O.
class Transport {
 public:
  // Return false to end the stream.
  using OnData = std::function<bool(std::string_view bytes)>;

  // Throws std::system_error if no thread can be started.
  explicit Transport(const Config& config);
  // Running calls fail with Cancelled.
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  // Blocks. Every response of the server is a Response, whatever its status code. Unavailable: no
  // response arrived; the message says why. FailedPrecondition: TLS rejects these certificates, so
  // a retry cannot help. DeadlineExceeded: the request timed out. Cancelled: `stop` was requested.
  Result<Response> Call(const Request& request, const std::stop_token& stop = {});
  // If the status is 200, passes the body to `on_data` as it arrives, on the thread of the
  // transport: `on_data` must not block. Returns at the end of the stream, whichever side ended it.
  // The body of any other status is in the response.
  Result<Response> Stream(const Request& request, OnData on_data, const std::stop_token& stop = {});

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace edl::kube
