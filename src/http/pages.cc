#include "http/pages.h"

#include <chrono>
#include <latch>
#include <thread>
#include <utility>

#include <httplib.h>

#include "base/mutex.h"

namespace edl::http {
namespace {

// Limit of connections that are served at a time, each by its own thread.
constexpr size_t kMostRequests = 64;
constexpr std::chrono::seconds kRequestTimeout{5};

// Starts a thread for each connection, so that a slow request does not block the others. Above
// kMostRequests, connections wait. Thread-safe.
class ThreadPerConnection final : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> serve) override {
    const MutexLock lock(mutex_);
    while (running_ >= kMostRequests) changed_.Wait(mutex_);
    ++running_;
    std::thread([this, serve = std::move(serve)] {
      serve();
      const MutexLock ended(mutex_);
      --running_;
      changed_.NotifyAll();
    }).detach();
  }
  void shutdown() override {
    const MutexLock lock(mutex_);
    while (running_ > 0) changed_.Wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  size_t running_ GUARDED_BY(mutex_) = 0;
};

class HttplibServer final : public PageServer {
 public:
  explicit HttplibServer(const std::map<std::string, MakePage>& pages) {
    http_.new_task_queue = [this] {
      started_.count_down();
      return new ThreadPerConnection;  // NOLINT: the library deletes it
    };
    // Not SO_REUSEPORT, which the library sets by default: two servers would share the port.
    http_.set_socket_options([](socket_t socket) {
      const int on = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
      const int off = 0;
      setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));  // fails for IPv4
    });
    http_.set_read_timeout(kRequestTimeout);
    http_.set_write_timeout(kRequestTimeout);
    http_.set_keep_alive_max_count(1);
    for (const auto& [path, make] : pages) {
      http_.Get(path, [make = make](const httplib::Request& request, httplib::Response& response) {
        const Page page = make({.authorization = request.get_header_value("Authorization")});
        response.status = page.status;
        response.set_content(page.text, page.type);
      });
    }
  }
  ~HttplibServer() override {
    http_.stop();
    if (thread_.joinable()) thread_.join();
  }
  HttplibServer(const HttplibServer&) = delete;
  HttplibServer& operator=(const HttplibServer&) = delete;

  Status Listen(const Options& options) {
    // The socket of "::" also accepts IPv4. Some machines have no IPv6.
    const bool bound = options.host.empty()
                           ? Bind("::", options.port) || Bind("0.0.0.0", options.port)
                           : Bind(options.host, options.port);
    if (!bound) {
      return Unavailable("cannot listen on port {} of {}: give {} another port", options.port,
                         options.host.empty() ? "all addresses" : options.host, options.flag);
    }
    thread_ = std::thread([this] { http_.listen_after_bind(); });
    // stop() has no effect on a server that has not begun to listen.
    started_.wait();
    return Ok();
  }

  int port() const override { return port_; }

 private:
  bool Bind(const std::string& address, int port) {
    port_ = port == 0 ? http_.bind_to_any_port(address) : port;
    return port == 0 ? port_ >= 0 : http_.bind_to_port(address, port);
  }

  httplib::Server http_;
  int port_ = 0;
  std::latch started_{1};
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<PageServer>> PageServer::Start(
    const Options& options, const std::map<std::string, MakePage>& pages) {
  auto server = std::make_unique<HttplibServer>(pages);
  EDL_RETURN_IF_ERROR(server->Listen(options));
  return std::unique_ptr<PageServer>(std::move(server));
}

}  // namespace edl::http
