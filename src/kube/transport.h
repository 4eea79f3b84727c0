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
  std::vector<std::string> headers;  // "Name: value", besides what every request has
  // From the call to the last byte; 0: without end, for a watch or a log.
  std::chrono::milliseconds timeout{30'000};
  // A stream that is silent for so long is taken for dead: its peer may be gone without a word.
  // 0: it may be.
  std::chrono::milliseconds silence{0};
  // On a connection of its own. On one that was used before, a request may be sent a second time if
  // the server hangs up just then.
  bool once = false;
};

struct Response {
  int status = 0;  // of HTTP
  std::string body;
  std::string retry_after;            // as the server wrote it
  std::vector<std::string> warnings;  // what the server wants its users to read
};

// HTTP to one API server, over one pool of connections that all callers share.
//
// Thread-safe. Has one thread of its own, which moves all bytes.
class Transport {
 public:
  // Returns false to end the stream.
  using OnData = std::function<bool(std::string_view bytes)>;

  explicit Transport(const Config& config);
  // Calls that still run end with Cancelled.
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  // Blocks. Every answer of the server is a response, whatever its status. Unavailable: there was
  // none, and the message says why; FailedPrecondition: there will be none with these certificates;
  // DeadlineExceeded: it took too long; Cancelled: by `stop`.
  Result<Response> Call(const Request& request, const std::stop_token& stop = {});
  // Passes the body on as it comes, if the status is 200, on the transport's thread: `on_data` must
  // not block. Returns at the end of the stream, whoever ended it; the body of another status is in
  // the response.
  Result<Response> Stream(const Request& request, OnData on_data, const std::stop_token& stop = {});

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace edl::kube
