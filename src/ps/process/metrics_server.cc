#include "ps/process/metrics_server.h"

#include <chrono>
#include <latch>
#include <thread>

#include <httplib.h>

#include "base/mutex.h"
#include "base/secret.h"
#include "ps/metrics.h"

namespace edl::ps {
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

class HttpMetrics final : public MetricsServer {
 public:
  HttpMetrics(ParameterServer& server, const std::string& token) {
    http_.new_task_queue = [this] {
      started_.count_down();
      return new ThreadPerConnection;  // NOLINT: the library deletes it
    };
    // Not SO_REUSEPORT, which the library sets by default: two servers would share the port.
    http_.set_socket_options([](socket_t socket) {
      const int on = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    });
    http_.set_read_timeout(kRequestTimeout);
    http_.set_write_timeout(kRequestTimeout);
    http_.set_keep_alive_max_count(1);
    http_.Get("/healthz", [](const httplib::Request&, httplib::Response& response) {
      response.set_content("ok\n", "text/plain");
    });
    http_.Get(
        "/metrics", [&server, token](const httplib::Request& request, httplib::Response& response) {
          if (!token.empty() &&
              !SecretsEqual(request.get_header_value("Authorization"), "Bearer " + token)) {
            response.status = 401;
            response.set_content(
                "this page requires the job's token: Authorization: Bearer TOKEN\n", "text/plain");
            return;
          }
          response.set_content(MetricsText(server.State()), "text/plain; version=0.0.4");
        });
  }
  ~HttpMetrics() override {
    http_.stop();
    if (thread_.joinable()) thread_.join();
  }
  HttpMetrics(const HttpMetrics&) = delete;
  HttpMetrics& operator=(const HttpMetrics&) = delete;

  // Unavailable: the port is in use.
  Status Listen(const std::string& host, int port) {
    const std::string address = host.empty() ? "0.0.0.0" : host;
    const bool any = port == 0;
    port_ = any ? http_.bind_to_any_port(address) : port;
    if (port_ < 0 || (!any && !http_.bind_to_port(address, port))) {
      return Unavailable("cannot listen on port {} of {}: give --http_port another port", port,
                         address);
    }
    thread_ = std::thread([this] { http_.listen_after_bind(); });
    // stop() has no effect on a server that has not begun to listen.
    started_.wait();
    return Ok();
  }

  int port() const override { return port_; }

 private:
  httplib::Server http_;
  int port_ = 0;
  std::latch started_{1};
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<MetricsServer>> MetricsServer::Start(ParameterServer& server,
                                                            const std::string& host, int port,
                                                            const std::string& token) {
  auto metrics = std::make_unique<HttpMetrics>(server, token);
  EDL_RETURN_IF_ERROR(metrics->Listen(host, port));
  return std::unique_ptr<MetricsServer>(std::move(metrics));
}

}  // namespace edl::ps
