#include "master/testing/served_master.h"

#include <chrono>
#include <future>
#include <utility>
#include <vector>

#include <grpcpp/generic/generic_stub.h>

#include "base/log.h"
#include "base/testing/await.h"
#include "base/testing/status_matchers.h"

namespace edl::master {
namespace {

Ledger InMemory() {
  Result<Ledger> ledger = Ledger::Open(":memory:");
  CHECK(ledger.ok(), "{}", ledger.status().message());
  return std::move(*ledger);
}

// Does what ReplicaLauncher would do.
void RunCommands(backend::AttachedBackend* workers, const std::vector<Command>& commands) {
  if (workers == nullptr) return;
  for (const Command& command : commands) {
    if (const auto* launch = std::get_if<LaunchCommand>(&command)) {
      EXPECT_OK(workers->Launch({.name = launch->name,
                                 .role = launch->replica.role,
                                 .index = launch->index,
                                 .id = launch->replica.id,
                                 .command = {"python3", "-m", "elasticdl.worker"},
                                 .env = {{"WORKER_TYPE", "worker"}}}));
    } else if (const auto* stop = std::get_if<StopCommand>(&command)) {
      EXPECT_OK(workers->Stop(stop->name, stop->grace));
    } else {
      EXPECT_OK(workers->Acknowledge(std::get<AcknowledgeCommand>(command).name));
    }
  }
}

}  // namespace

ServedMaster::ServedMaster(job::JobSpec spec, const std::string& address,
                           backend::AttachedBackend* workers)
    : spec_(std::move(spec)),
      ledger_(InMemory()),
      core_(ledger_, spec_, /*seed=*/1),
      loop_(
          core_, clock_,
          {.commands =
               [workers](const std::vector<Command>& commands) { RunCommands(workers, commands); },
           .view = [](const job::JobView&) {},
           .progress =
               [this](const job::JobView& view) {
                 const MutexLock lock(mutex_);
                 shown_ = view.version;
                 changed_.NotifyAll();
               },
           .fence =
               [this] {
                 const MutexLock lock(mutex_);
                 while (fenced_) changed_.Wait(mutex_);
               },
           .scan = [](const std::vector<std::string>&) {}}),
      workers_(workers) {
  const Status loaded = core_.Load(clock_.Now(), clock_.WallNow());
  CHECK(loaded.ok(), "{}", loaded.message());
  auto server = Server::Start(
      address, kToken, spec_, core_,
      {.backend = workers, .post = [this](auto work) { loop_.Post(std::move(work)); }});
  CHECK(server.ok(), "{}", server.status().message());
  server_ = std::move(*server);
  if (workers != nullptr) {
    workers->Watch([this](const job::ReplicaEvent& event) {
      loop_.Post([event](Core& core) { core.OnReplicaEvent(event, {}); });
    });
  }
  thread_ = std::thread([this] {
    const Status ran = loop_.Run(server_->queue());
    CHECK(ran.ok(), "{}", ran.message());
  });
}

ServedMaster::~ServedMaster() {
  loop_.Post([](Core& core) {
    core.Stop("the test is over");
    // There is no backend, so report the exit of replicas that a test launched.
    core.OnReplicaEvent({.kind = job::ReplicaEvent::Kind::kSynced}, {});
    std::vector<std::string> names;
    for (const auto& [name, replica] : core.keeper().replicas()) names.push_back(name);
    for (const std::string& name : names) {
      core.OnReplicaEvent({.name = name,
                           .kind = job::ReplicaEvent::Kind::kExited,
                           .cause = {.kind = job::ExitCause::Kind::kKilled}},
                          {});
    }
  });
  thread_.join();
  if (workers_ == nullptr) return;
  workers_->Watch([](const job::ReplicaEvent&) {});
  workers_->SetOnNotice([](const backend::AttachedBackend::Notice&) {});
}

std::shared_ptr<grpc::Channel> ServedMaster::Connect() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(server_->port()),
                                   grpc::InsecureChannelCredentials(), arguments);
}

int ServedMaster::port() const { return server_->port(); }

Status ServedMaster::AwaitShown(int64_t version) {
  const MutexLock lock(mutex_);
  return Await(mutex_, changed_, fmt::format("a view with {} completed batches", version),
               [&]() REQUIRES(mutex_) { return shown_ >= version; });
}

void ServedMaster::OnLoop(const std::function<void(Core&)>& work) {
  std::promise<void> done;
  loop_.Post([&](Core& core) {
    work(core);
    core.SendAfterCommit([&] { done.set_value(); });
  });
  const Status committed = AwaitReady(done.get_future(), "work on the loop and its commit");
  CHECK(committed.ok(), "{}", committed.message());
}

void ServedMaster::Register(const DatasetSpec& spec) {
  OnLoop([&](Core& core) { EXPECT_OK(core.Register(spec)); });
}

Status ServedMaster::AwaitWaiting(size_t calls) {
  return AwaitPolling(fmt::format("{} calls wait for a shard", calls), [&] {
    size_t waiting = 0;
    OnLoop([&](Core& core) { waiting = core.dispatcher().waiting(); });
    return waiting == calls;
  });
}

grpc::Status CallWith(const std::string& request, const std::shared_ptr<grpc::Channel>& channel,
                      const std::string& method, grpc::ClientContext& context) {
  grpc::GenericStub stub(channel);
  const grpc::Slice bytes(request);
  const grpc::ByteBuffer message(&bytes, 1);
  grpc::ByteBuffer response;
  grpc::Status status;
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareUnaryCall(&context, method, message, &queue);
  call->StartCall();
  call->Finish(&response, &status, &status);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  return status;
}

std::unique_ptr<grpc::ClientContext> NewContext(std::chrono::milliseconds timeout,
                                                const std::string& token) {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() + timeout);
  context->AddMetadata("authorization", "Bearer " + token);
  return context;
}

}  // namespace edl::master
