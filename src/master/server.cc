#include "master/server.h"

#include <chrono>

#include <absl/synchronization/mutex.h>
#include <grpcpp/grpcpp.h>

#include "master/compat_service.h"
#include "master/master_service.h"

namespace edl::master {
namespace {

constexpr int kMostMessageBytes = 256 << 20;  // as the published clients allow
// Notices callers that vanished without a word while their call is held.
constexpr int kPingEveryMs = 20000;
constexpr int kPingTimeoutMs = 10000;

}  // namespace

Result<std::unique_ptr<Server>> Server::Start(const std::string& address, const std::string& token,
                                              const job::JobSpec& job, Core& core) {
  // Debian builds abseil with its search for deadlocks on: a twentieth of the master's time.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  std::unique_ptr<Server> server(new Server(core));
  server->services_ = NewCompatServices(job);
  server->services_.push_back(NewMasterService(token));
  grpc::ServerBuilder builder;
  // Two masters on one port would each get half of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kPingEveryMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
  // Clients beat and reconnect as often as they like.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
  builder.SetMaxReceiveMessageSize(kMostMessageBytes);
  builder.SetMaxSendMessageSize(kMostMessageBytes);
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &server->port_);
  for (const auto& service : server->services_) builder.RegisterService(&service->Registered());
  server->queue_ = builder.AddCompletionQueue();
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr || server->port_ == 0) {
    return Unavailable("the master cannot listen on {}: the port is taken", address);
  }
  for (const auto& service : server->services_) service->Listen(*server->queue_);
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
