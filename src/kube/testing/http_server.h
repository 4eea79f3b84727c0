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

// One request as it came in.
struct ServedRequest {
  std::string method;
  std::string target;                          // path and query
  std::map<std::string, std::string> headers;  // names in small letters
  std::string body;
};

// The wire to one client, for a server that behaves, or does not.
class ServedConnection {
 public:
  explicit ServedConnection(int fd) : fd_(fd) {}

  // A whole answer; the connection stays open.
  void Answer(int status, std::string_view body, std::string_view more_headers = "");
  // An answer in pieces: its head, then chunks, then the end.
  void BeginChunks(int status = 200);
  void Chunk(std::string_view bytes);
  void EndChunks();
  // Bytes as they are.
  void Send(std::string_view bytes);
  // The connection breaks.
  void Break();
  // Returns when the client has closed its end.
  void AwaitClose();

 private:
  const int fd_;
};

// An HTTP/1.1 server on a port of this machine. Each connection has a thread, which calls `handle`
// for each request.
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
