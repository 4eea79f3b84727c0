#include "master/service/server.h"

#include <chrono>
#include <limits>

#include <absl/synchronization/mutex.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>

#include "base/log.h"
#include "master/service/compat_service.h"
#include "master/service/listener.h"
#include "master/service/master_service.h"

namespace edl::master {
namespace {

// The largest request is a shard checkpoint.
constexpr int kMostRequestBytes = 16 << 20;
constexpr int kMostAnswerBytes = 256 << 20;  // as the published clients allow
// The memory of gRPC for all connections and calls. Beyond it gRPC closes connections, so it is
// enough for 30,000 workers, each with a connection and two calls, which need 35 KiB.
constexpr size_t kMostGrpcBytes = size_t{1} << 30;
constexpr int kMostCallsPerConnection = 256;
// How many new calls gRPC can deliver before the loop waits for more. Each needs some memory.
constexpr int kAwaitedCalls = 128;

}  // namespace

Result<std::unique_ptr<Server>> Server::Start(const std::string& address, const std::string& token,
                                              const job::JobSpec& job, Core& core,
                                              const AttachedWorkers& workers) {
  // Debian builds abseil with deadlock detection, which costs 5 % of the master's time.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  std::unique_ptr<Server> server(new Server(core));
  const bool on_this_machine = address.starts_with("127.");
  AddCompatServices(job, on_this_machine, server->methods_);
  AddMasterService(token, server->methods_);
  AddAttachService(token, job, workers, server->methods_);
  grpc::ServerBuilder builder;
  // Two masters on one port would each get half of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // TCP keepalive checks the connections (see WatchPeersOf). gRPC's own pings would be answered by
  // the peer's process, which may be busy, and would change the timeouts of the sockets.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, std::numeric_limits<int>::max());
  // Clients may send pings without data as often as each second.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMostCallsPerConnection);
  builder.SetMaxReceiveMessageSize(kMostRequestBytes);
  builder.SetMaxSendMessageSize(kMostAnswerBytes);
  builder.SetResourceQuota(grpc::ResourceQuota("master").Resize(kMostGrpcBytes));
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &server->port_);
  builder.RegisterAsyncGenericService(&server->service_);
  server->queue_ = builder.AddCompletionQueue();
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr || server->port_ == 0) {
    return Unavailable("the master cannot listen on {}: the port is in use", address);
  }
  // On one machine there is no other kernel to lose, and the queue of the loopback device is short.
  if (!on_this_machine && WatchPeersOf(server->port_) == 0) {
    LOG_WARNING(
        "cannot find the listening sockets on {} to set TCP keepalive: lost machines are noticed "
        "late",
        address);
  }
  for (int i = 0; i < kAwaitedCalls; ++i) {
    Call::Await({server->service_, *server->queue_, server->methods_});
  }
  return server;
}

Server::Server(Core& core) : core_(core) {}

Server::~Server() {
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  if (queue_ == nullptr) return;
  queue_->Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) static_cast<Loop::Event*>(tag)->On(core_, ok);
}

grpc::CompletionQueue& Server::queue() { return *queue_; }

}  // namespace edl::master
