#include "http/pages.h"

#include <array>
#include <chrono>
#include <latch>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mutex.h"

namespace edl::http {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Limit of connections that are served at a time, each by its own thread.
constexpr size_t kMostRequests = 64;
constexpr size_t kLargestRequest = size_t{64} << 10;

// Starts a thread for each connection, so that a slow request does not block the others. The task
// of a connection for which there is no thread runs on the thread that accepts. Thread-safe.
class ThreadPerConnection final : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> serve) override {
    if (!Start(serve)) serve();
  }
  void shutdown() override {
    const MutexLock lock(mutex_);
    while (running_ > 0) changed_.Wait(mutex_);
  }

 private:
  bool Start(const std::function<void()>& serve) {
    const MutexLock lock(mutex_);
    if (running_ >= kMostRequests) return false;
    try {
      std::thread([this, serve] {
        serve();
        const MutexLock ended(mutex_);
        --running_;
        changed_.NotifyAll();
      }).detach();
    } catch (const std::system_error&) {
      return false;  // a limit of threads is reached
    }
    ++running_;
    return true;
  }

  Mutex mutex_;
  CondVar changed_;
  size_t running_ GUARDED_BY(mutex_) = 0;
};

// A connection that must end by a deadline, however slowly its client reads and writes. Confined.
class DeadlineStream final : public httplib::Stream {
 public:
  DeadlineStream(socket_t socket, SteadyClock::time_point deadline)
      : socket_(socket), deadline_(deadline) {}

  bool is_readable() const override { return Await(POLLIN); }
  bool is_writable() const override { return Await(POLLOUT); }
  ssize_t read(char* to, size_t size) override {
    if (received_.empty()) {
      if (total_ > kLargestRequest || !Await(POLLIN)) return -1;
      const ssize_t count = recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
      if (count <= 0) return count;
      total_ += static_cast<size_t>(count);
      received_ = std::string_view(buffer_.data(), static_cast<size_t>(count));
    }
    const size_t count = received_.copy(to, size);
    received_.remove_prefix(count);
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* from, size_t size) override {
    for (size_t sent = 0; sent < size;) {
      if (!Await(POLLOUT)) return -1;
      const ssize_t count = send(socket_, from + sent, size - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (count < 0) return -1;
      sent += static_cast<size_t>(count);
    }
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  void get_local_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  socket_t socket() const override { return socket_; }

 private:
  bool Await(short events) const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - SteadyClock::now());
    pollfd ready{.fd = socket_, .events = events, .revents = 0};
    return left.count() > 0 && poll(&ready, 1, static_cast<int>(left.count())) > 0;
  }

  const socket_t socket_;
  const SteadyClock::time_point deadline_;
  std::array<char, 4096> buffer_{};
  std::string_view received_;  // the part of buffer_ that was not read yet
  size_t total_ = 0;           // bytes received
};

// The library's server, with a deadline for each connection, which serves one request.
class DeadlineServer final : public httplib::Server {
 public:
  explicit DeadlineServer(SteadyClock::duration timeout) : timeout_(timeout) {}

  // Blocks until stop() is called.
  void Accept() {
    accepting_ = std::this_thread::get_id();
    // The library lets only five connections wait.
    ::listen(svr_sock_, SOMAXCONN);
    listen_after_bind();
  }

 private:
  bool process_and_close_socket(socket_t socket) override {
    bool answered = false;
    // Above the limit of connections, one is closed instead of keeping all others waiting.
    if (std::this_thread::get_id() != accepting_) {
      DeadlineStream stream(socket, SteadyClock::now() + timeout_);
      bool closes = false;
      answered = process_request(stream, /*close_connection=*/true, closes, nullptr);
    }
    shutdown(socket, SHUT_RDWR);
    close(socket);
    return answered;
  }

  const SteadyClock::duration timeout_;
  std::thread::id accepting_;
};

class HttplibServer final : public PageServer {
 public:
  HttplibServer(const Options& options, const std::map<std::string, MakePage>& pages)
      : http_(options.timeout) {
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
    for (const auto& [path, make] : pages) {
      http_.Get(path, [make = make](const httplib::Request& request, httplib::Response& response) {
        const Page page = make({.authorization = request.get_header_value("Authorization"),
                                .accept = request.get_header_value("Accept")});
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
      return Unavailable(
          "cannot listen on port {} of {}: the port is in use, or this machine does not have the "
          "address; give {} another one",
          options.port, options.host.empty() ? "all addresses" : options.host, options.flag);
    }
    thread_ = std::thread([this] { http_.Accept(); });
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

  DeadlineServer http_;
  int port_ = 0;
  std::latch started_{1};
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<PageServer>> PageServer::Start(
    const Options& options, const std::map<std::string, MakePage>& pages) {
  auto server = std::make_unique<HttplibServer>(options, pages);
  EDL_RETURN_IF_ERROR(server->Listen(options));
  return std::unique_ptr<PageServer>(std::move(server));
}

}  // namespace edl::http
