#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/mutex.h"

namespace edl::kube {

// A received request.
struct ServedRequest {
  std::string method;
  std::string target;                          // path and query
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

// The connection to one client, with which a test can also send incorrect answers.
class ServedConnection {
 public:
  explicit ServedConnection(int fd) : fd_(fd) {}

  // Sends a complete answer; the connection stays open.
  void Answer(int status, std::string_view body, std::string_view more_headers = "");
  // Sends an answer in chunks: the head, then chunks, then the end.
  void BeginChunks(int status = 200);
  void Chunk(std::string_view bytes);
  void EndChunks();
  // Sends raw bytes.
  void Send(std::string_view bytes);
  // Closes the connection.
  void Break();
  // Blocks until the client has closed its end, or the server is destroyed.
  void AwaitClose();

 private:
  const int fd_;
};

// An HTTP/1.1 server on a loopback port. Each connection has a thread, which calls `handle` for
// each request.
class HttpServer {
 public:
  using Handle = std::function<void(const ServedRequest&, ServedConnection&)>;

  explicit HttpServer(Handle handle);
  ~HttpServer();

  std::string url() const;
  int connections() const { return connections_; }

 private:
  void Accept();
  void Serve(int fd);

  const Handle handle_;
  FileDescriptor listener_;
  int port_ = 0;
  std::atomic<int> connections_{0};
  std::thread acceptor_;

  Mutex mutex_;
  std::vector<std::thread> threads_ GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<FileDescriptor>> sockets_ GUARDED_BY(mutex_);
};

}  // namespace edl::kube
