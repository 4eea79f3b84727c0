// Many workers in one process, for benchmarks/scale.py: C connections to a running master, each
// with an open Watch stream, heartbeats at the interval that the master sets, and leases. Prints
// "joined", then reads commands and prints their results:
//
//   hold S            each worker leases S shards of dataset "held"
//                       "held N"
//   rate R SECONDS    R leases of "flow" per second, over all workers
//                       "rate SHARDS_PER_S P50 P99", in ms
//   wait N            each worker waits for more of "held", N in all
//                       "waiting", then "recovered"
//   end               each worker reports all shards and leases until the end
//                       "ended"
//   quit
//
// An error of the master ends the process.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <absl/synchronization/mutex.h>
#include <grpcpp/grpcpp.h>
#include <poll.h>
#include <unistd.h>

#include "base/descriptor_limit.h"
#include "elasticdl/v1/master.grpc.pb.h"

namespace {

namespace pb = ::elasticdl::v1;
using Clock = std::chrono::steady_clock;

constexpr const char* kHeld = "held";
constexpr const char* kFlow = "flow";

struct Options {
  std::string address;
  std::string token;
  int connections = 100;
  int first_id = 100'000;
  long held_shards = 1000;  // of dataset "held"
};

[[noreturn]] void Die(const std::string& what, const std::string& why) {
  std::fprintf(stderr, "scale_load: %s: %s\n", what.c_str(), why.c_str());
  std::exit(1);
}

// A tag on the completion queue.
class Event {
 public:
  virtual ~Event() = default;
  virtual void On(bool ok) = 0;
};

template <typename Response>
class Call final : public Event {
 public:
  using Then = std::function<void(const Response&)>;

  template <typename Start>
  Call(const Options& options, const char* what, Start start, Then then)
      : what_(what), then_(std::move(then)) {
    context_.AddMetadata("authorization", "Bearer " + options.token);
    reader_ = start(&context_);
    reader_->Finish(&response_, &status_, static_cast<Event*>(this));
  }
  void On(bool) override {
    if (!status_.ok()) Die(what_, status_.error_message());
    const std::unique_ptr<Call> self(this);
    then_(response_);
  }

 private:
  const char* what_;
  const Then then_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> reader_;
  Response response_;
  grpc::Status status_;
};

// The Watch stream of a client, which is read until the process ends.
class Stream final : public Event {
 public:
  Stream(const Options& options, pb::Master::Stub& stub, grpc::CompletionQueue& queue,
         uint64_t incarnation) {
    context_.AddMetadata("authorization", "Bearer " + options.token);
    pb::WatchRequest request;
    request.set_incarnation(incarnation);
    reader_ = stub.AsyncWatch(&context_, request, &queue, static_cast<Event*>(this));
  }
  void On(bool ok) override {
    if (ending_) Die("Watch", status_.error_message());
    if (ok) {
      reader_->Read(&membership_, static_cast<Event*>(this));
    } else {
      ending_ = true;
      reader_->Finish(&status_, static_cast<Event*>(this));
    }
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncReader<pb::Membership>> reader_;
  pb::Membership membership_;
  bool ending_ = false;
  grpc::Status status_;
};

// One worker.
class Client {
 public:
  using Answered = std::function<void(Client&, const pb::ReportAndLeaseResponse&)>;

  Client(const Options& options, int number, grpc::CompletionQueue& queue)
      : options_(options), number_(number), queue_(queue) {}

  void Join(std::function<void()> joined) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = pb::Master::NewStub(
        grpc::CreateCustomChannel(options_.address, grpc::InsecureChannelCredentials(), arguments));
    pb::JoinRequest request;
    request.set_role("worker");
    request.set_replica_id(options_.first_id + number_);
    new Call<pb::JoinResponse>(
        options_, "Join",
        [&](auto* context) { return stub_->AsyncJoin(context, request, &queue_); },
        [this, joined = std::move(joined)](const pb::JoinResponse& response) {
          incarnation_ = response.incarnation();
          heartbeat_ms_ = response.heartbeat_ms();
          stream_ = std::make_unique<Stream>(options_, *stub_, queue_, incarnation_);
          joined();
        });
  }

  void Register(const char* dataset, long shards, std::function<void()> done) {
    pb::RegisterDatasetRequest request;
    request.mutable_spec()->set_name(dataset);
    request.mutable_spec()->set_size(shards * 64);
    request.mutable_spec()->set_batch_size(64);
    request.mutable_spec()->set_batches_per_shard(1);
    request.mutable_spec()->set_epochs(1);
    new Call<pb::RegisterDatasetResponse>(
        options_, "RegisterDataset",
        [&](auto* context) { return stub_->AsyncRegisterDataset(context, request, &queue_); },
        [done = std::move(done)](const auto&) { done(); });
  }

  void Heartbeat(std::function<void()> answered) {
    pb::HeartbeatRequest request;
    request.set_incarnation(incarnation_);
    new Call<pb::HeartbeatResponse>(
        options_, "Heartbeat",
        [&](auto* context) { return stub_->AsyncHeartbeat(context, request, &queue_); },
        [this, answered = std::move(answered)](const pb::HeartbeatResponse& response) {
          if (response.heartbeat_ms() > 0) heartbeat_ms_ = response.heartbeat_ms();
          answered();
        });
  }

  void ReportAndLease(const char* dataset, uint32_t at_most, uint32_t wait_ms,
                      std::vector<uint64_t> reports, Answered answered) {
    pb::ReportAndLeaseRequest request;
    request.set_incarnation(incarnation_);
    request.set_number(++call_);
    open_.insert(call_);
    request.set_received(*open_.begin() - 1);
    request.set_dataset(dataset);
    request.set_lease_at_most(at_most);
    request.set_wait_ms(wait_ms);
    for (const uint64_t lease : reports) request.add_reports()->set_lease(lease);
    new Call<pb::ReportAndLeaseResponse>(
        options_, "ReportAndLease",
        [&](auto* context) { return stub_->AsyncReportAndLease(context, request, &queue_); },
        [this, number = call_, answered = std::move(answered)](const auto& response) {
          open_.erase(number);
          answered(*this, response);
        });
  }

  int heartbeat_ms() const { return heartbeat_ms_; }
  std::vector<uint64_t>& held() { return held_; }

 private:
  const Options& options_;
  const int number_;
  grpc::CompletionQueue& queue_;
  std::unique_ptr<pb::Master::Stub> stub_;
  std::unique_ptr<Stream> stream_;
  uint64_t incarnation_ = 0;
  int heartbeat_ms_ = 1000;
  uint64_t call_ = 0;
  std::set<uint64_t> open_;
  std::vector<uint64_t> held_;
};

class Load {
 public:
  explicit Load(const Options& options) : options_(options) {}

  void Run() {
    Join();
    clients_.front()->Register(kHeld, options_.held_shards, [this] { ++registered_; });
    clients_.front()->Register(kFlow, 1'000'000'000, [this] { ++registered_; });
    DriveUntil([this] { return registered_ == 2; });
    Say("joined");
    std::string line;
    while (ReadLine(line)) {
      std::istringstream words(line);
      std::string command;
      words >> command;
      if (command == "hold") {
        uint32_t shards = 0;
        words >> shards;
        HoldEach(shards);
      } else if (command == "rate") {
        double rate = 0;
        double seconds = 0;
        words >> rate >> seconds;
        Rate(rate, seconds);
      } else if (command == "wait") {
        long count = 0;
        words >> count;
        WaitFor(count);
      } else if (command == "end") {
        End();
      } else if (command == "quit") {
        break;
      } else {
        Die("no such command", line);
      }
    }
    std::fflush(stdout);
    _exit(0);  // closing 10,000 channels would take longer than the measurement
  }

 private:
  struct Due {
    Clock::time_point at;
    Client* client;
    bool operator<(const Due& other) const { return at > other.at; }
  };

  static void Say(const std::string& text) {
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
  }

  // Handles events and sends heartbeats.
  void Drive(std::chrono::milliseconds wait) {
    SendHeartbeats();
    void* tag = nullptr;
    bool ok = false;
    gpr_timespec until = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                      gpr_time_from_millis(wait.count(), GPR_TIMESPAN));
    for (int i = 0; i < 256; ++i) {
      if (queue_.AsyncNext(&tag, &ok, until) != grpc::CompletionQueue::GOT_EVENT) return;
      static_cast<Event*>(tag)->On(ok);
      until = gpr_inf_past(GPR_CLOCK_MONOTONIC);
    }
  }

  template <typename Condition>
  void DriveUntil(Condition condition) {
    while (!condition()) Drive(std::chrono::milliseconds(5));
  }

  bool ReadLine(std::string& line) {
    pollfd in{STDIN_FILENO, POLLIN, 0};
    while (poll(&in, 1, 0) == 0) Drive(std::chrono::milliseconds(5));
    return static_cast<bool>(std::getline(std::cin, line));
  }

  void SendHeartbeats() {
    const auto now = Clock::now();
    while (!heartbeats_.empty() && heartbeats_.top().at <= now) {
      Client* client = heartbeats_.top().client;
      heartbeats_.pop();
      client->Heartbeat([this, client] { HeartbeatLater(*client); });
    }
  }

  void HeartbeatLater(Client& client) {
    heartbeats_.push({Clock::now() + std::chrono::milliseconds(client.heartbeat_ms()), &client});
  }

  void Join() {
    constexpr size_t kAtOnce = 64;
    size_t joined = 0;
    for (int i = 0; i < options_.connections; ++i) {
      clients_.push_back(std::make_unique<Client>(options_, i, queue_));
      Client* client = clients_.back().get();
      client->Join([this, client, &joined] {
        ++joined;
        HeartbeatLater(*client);
      });
      DriveUntil([&] { return clients_.size() - joined < kAtOnce; });
    }
    DriveUntil([&] { return joined == clients_.size(); });
  }

  void HoldEach(uint32_t shards) {
    size_t open = 0;
    long held = 0;
    for (auto& client : clients_) {
      ++open;
      client->ReportAndLease(kHeld, shards, 60'000, {},
                             [&](Client& answered, const auto& response) {
                               --open;
                               for (const pb::Shard& shard : response.shards())
                                 answered.held().push_back(shard.lease());
                               held += response.shards_size();
                             });
      DriveUntil([&] { return open < 256; });
    }
    DriveUntil([&] { return open == 0; });
    Say("held " + std::to_string(held));
  }

  void Rate(double rate, double seconds) {
    constexpr uint32_t kShards = 4;
    const double calls_per_s = rate / kShards;
    const auto count = static_cast<long>(calls_per_s * seconds);
    std::vector<double> latencies;
    std::map<Client*, std::vector<uint64_t>> leases;
    std::deque<Client*> idle;
    for (auto& client : clients_) idle.push_back(client.get());
    long shards = 0;
    const auto begin = Clock::now();
    long open = 0;
    for (long call = 0; call < count || open > 0;) {
      const auto due = begin + std::chrono::duration_cast<Clock::duration>(
                                   std::chrono::duration<double>(call / calls_per_s));
      if (call >= count || idle.empty() || Clock::now() < due) {
        Drive(std::chrono::milliseconds(0));
        std::this_thread::yield();
        continue;
      }
      Client* client = idle.front();
      idle.pop_front();
      ++call;
      ++open;
      client->ReportAndLease(kFlow, kShards, 1000, std::exchange(leases[client], {}),
                             [&, due](Client& answered, const auto& response) {
                               --open;
                               shards += response.shards_size();
                               const std::chrono::duration<double, std::milli> took =
                                   Clock::now() - due;
                               latencies.push_back(took.count());
                               for (const pb::Shard& shard : response.shards()) {
                                 leases[&answered].push_back(shard.lease());
                               }
                               idle.push_back(&answered);
                             });
    }
    const double took = std::chrono::duration<double>(Clock::now() - begin).count();
    for (auto& [client, held] : leases) {
      if (held.empty()) continue;
      ++open;
      client->ReportAndLease(kFlow, 0, 0, std::move(held), [&](Client&, const auto&) { --open; });
    }
    DriveUntil([&] { return open == 0; });
    std::sort(latencies.begin(), latencies.end());
    const auto at = [&](double share) {
      return latencies.empty() ? 0.0
                               : latencies[static_cast<size_t>(
                                     share * static_cast<double>(latencies.size() - 1))];
    };
    char text[128];
    std::snprintf(text, sizeof(text), "rate %.0f %.3f %.3f", static_cast<double>(shards) / took,
                  at(0.5), at(0.99));
    Say(text);
  }

  // Waits for the shards that lost workers held.
  void AskForLost(Client& client, long count) {
    client.ReportAndLease(kHeld, 2, 600'000, {},
                          [this, count](Client& answered, const auto& response) {
                            for (const pb::Shard& shard : response.shards())
                              answered.held().push_back(shard.lease());
                            regained_ += response.shards_size();
                            if (regained_ < count) AskForLost(answered, count);
                          });
  }

  void WaitFor(long count) {
    for (auto& client : clients_) AskForLost(*client, count);
    // When later heartbeats are answered, the master has received the calls before them.
    size_t answered = 0;
    for (auto& client : clients_) client->Heartbeat([&] { ++answered; });
    DriveUntil([&] { return answered == clients_.size(); });
    Say("waiting");
    DriveUntil([&] { return regained_ >= count; });
    Say("recovered");
  }

  void End() {
    size_t finished = 0;
    for (auto& client : clients_) Finish(*client, finished);
    DriveUntil([&] { return finished == clients_.size(); });
    Say("ended");
  }

  void Finish(Client& client, size_t& finished) {
    client.ReportAndLease(kHeld, 1, 60'000, std::exchange(client.held(), {}),
                          [this, &finished](Client& answered, const auto& response) {
                            if (response.answer() == pb::ReportAndLeaseResponse::FINISHED) {
                              ++finished;
                              return;
                            }
                            for (const pb::Shard& shard : response.shards()) {
                              answered.held().push_back(shard.lease());
                            }
                            Finish(answered, finished);
                          });
  }

  const Options& options_;
  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::priority_queue<Due> heartbeats_;
  int registered_ = 0;
  long regained_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    const size_t at = text.find('=');
    const std::string name = text.substr(0, at);
    const std::string value = at == std::string::npos ? "" : text.substr(at + 1);
    if (name == "--address") {
      options.address = value;
    } else if (name == "--token") {
      options.token = value;
    } else if (name == "--connections") {
      options.connections = std::stoi(value);
    } else if (name == "--first_id") {
      options.first_id = std::stoi(value);
    } else if (name == "--held_shards") {
      options.held_shards = std::stol(value);
    } else {
      Die("no such flag", text);
    }
  }
  if (const auto raised = edl::RaiseDescriptorLimit(); !raised.ok()) {
    Die("descriptors", raised.status().message());
  }
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  Load(options).Run();
  return 0;
}
