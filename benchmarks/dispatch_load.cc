// Load generator for ReportAndLease calls to a running master, for benchmarks/dispatch.py: C
// connections, each with one call in flight that reports the shards of the last answer and leases
// up to S more. With --rate, calls start at fixed times whether or not earlier calls were answered
// (open loop), and latency is measured from the time at which a call should have started. Prints
// "shards_per_s p50_ms p99_ms".
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <absl/synchronization/mutex.h>
#include <grpcpp/grpcpp.h>

#include "elasticdl/v1/master.grpc.pb.h"

namespace {

namespace pb = ::elasticdl::v1;
using Clock = std::chrono::steady_clock;

struct Options {
  std::string address;
  std::string token;
  std::string dataset = "bench";
  int connections = 64;
  int shards = 4;
  double seconds = 5;
  double rate = 0;  // shards per second over all connections; 0: as fast as answers arrive
  long size = 100'000'000'000;
};

void Authorize(grpc::ClientContext& context, const Options& options) {
  context.AddMetadata("authorization", "Bearer " + options.token);
}

[[noreturn]] void Die(const char* what, const grpc::Status& status) {
  std::fprintf(stderr, "dispatch_load: %s: %s\n", what, status.error_message().c_str());
  std::exit(1);
}

// One connection: joins, then reports and leases repeatedly. Its calls complete on `queue`, with
// the client as tag.
class Client {
 public:
  Client(const Options& options, int number, grpc::CompletionQueue& queue)
      : options_(options), queue_(queue) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = pb::Master::NewStub(
        grpc::CreateCustomChannel(options.address, grpc::InsecureChannelCredentials(), arguments));
    grpc::ClientContext context;
    Authorize(context, options_);
    pb::JoinRequest request;
    request.set_role("worker");
    request.set_replica_id(500'000 + number);
    pb::JoinResponse response;
    const grpc::Status status = stub_->Join(&context, request, &response);
    if (!status.ok()) Die("Join", status);
    incarnation_ = response.incarnation();
  }

  void Register() {
    grpc::ClientContext context;
    Authorize(context, options_);
    pb::RegisterDatasetRequest request;
    request.mutable_spec()->set_name(options_.dataset);
    request.mutable_spec()->set_size(options_.size);
    request.mutable_spec()->set_batch_size(64);
    request.mutable_spec()->set_batches_per_shard(1);
    request.mutable_spec()->set_epochs(1);
    pb::RegisterDatasetResponse response;
    const grpc::Status status = stub_->RegisterDataset(&context, request, &response);
    if (!status.ok()) Die("RegisterDataset", status);
  }

  // Starts the next call, which should have started at `due`.
  void ReportAndLease(Clock::time_point due) {
    due_ = due;
    context_.emplace();
    Authorize(*context_, options_);
    request_.Clear();
    request_.set_incarnation(incarnation_);
    request_.set_received(number_);
    request_.set_number(++number_);
    request_.set_dataset(options_.dataset);
    request_.set_lease_at_most(static_cast<uint32_t>(options_.shards));
    request_.set_wait_ms(1000);
    for (const pb::Shard& shard : response_.shards()) {
      request_.add_reports()->set_lease(shard.lease());
    }
    response_.Clear();
    reader_ = stub_->AsyncReportAndLease(&*context_, request_, &queue_);
    reader_->Finish(&response_, &status_, this);
  }

  // Call it when the call has completed. Returns the number of leased shards.
  int Finish() {
    if (!status_.ok()) Die("ReportAndLease", status_);
    return response_.shards_size();
  }

  Clock::time_point due() const { return due_; }

  // Leaves the job.
  void Leave() {
    grpc::ClientContext context;
    Authorize(context, options_);
    pb::LeaveRequest request;
    request.set_incarnation(incarnation_);
    pb::LeaveResponse response;
    (void)stub_->Leave(&context, request, &response);
  }

 private:
  const Options& options_;
  grpc::CompletionQueue& queue_;
  std::unique_ptr<pb::Master::Stub> stub_;
  std::optional<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<pb::ReportAndLeaseResponse>> reader_;
  grpc::Status status_;
  pb::ReportAndLeaseRequest request_;
  pb::ReportAndLeaseResponse response_;
  uint64_t incarnation_ = 0;
  uint64_t number_ = 0;
  Clock::time_point due_;
};

using Clients = std::vector<std::unique_ptr<Client>>;

struct Tally {
  std::vector<double> latencies_ms;
  long shards = 0;

  void Count(Client& client) {
    shards += client.Finish();
    const std::chrono::duration<double, std::milli> latency = Clock::now() - client.due();
    latencies_ms.push_back(latency.count());
  }
  void Print(Clock::time_point begin) {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    std::sort(latencies_ms.begin(), latencies_ms.end());
    const auto at = [&](double share) {
      const size_t n = latencies_ms.size();
      return n == 0 ? 0.0 : latencies_ms[std::min(n - 1, static_cast<size_t>(share * n))];
    };
    std::printf("%.0f %.3f %.3f\n", static_cast<double>(shards) / seconds, at(0.5), at(0.99));
  }
};

Clock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// Polls the queue without sleeping, because the benchmark measures the master, not the time to wake
// a client, and deadlines of a queue have a resolution of only one millisecond.
Client* Poll(grpc::CompletionQueue& queue) {
  void* tag = nullptr;
  bool ok = false;
  const gpr_timespec at_once = gpr_inf_past(GPR_CLOCK_MONOTONIC);
  if (queue.AsyncNext(&tag, &ok, at_once) == grpc::CompletionQueue::GOT_EVENT) {
    return static_cast<Client*>(tag);
  }
  std::this_thread::yield();  // the master or the disk threads may need this CPU
  return nullptr;
}

Client* Next(grpc::CompletionQueue& queue) {
  while (true) {
    if (Client* client = Poll(queue)) return client;
  }
}

void ClosedLoop(const Options& options, Clients& clients, grpc::CompletionQueue& queue) {
  Tally tally;
  const auto begin = Clock::now();
  const auto end = begin + Seconds(options.seconds);
  for (auto& client : clients) client->ReportAndLease(Clock::now());
  for (size_t open = clients.size(); open > 0;) {
    Client* client = Next(queue);
    tally.Count(*client);
    const auto now = Clock::now();
    if (now < end) {
      client->ReportAndLease(now);
    } else {
      --open;
    }
  }
  tally.Print(begin);
}

void OpenLoop(const Options& options, Clients& clients, grpc::CompletionQueue& queue) {
  Tally tally;
  std::deque<Client*> idle;
  for (auto& client : clients) idle.push_back(client.get());
  const auto begin = Clock::now();
  const double calls_per_s = options.rate / options.shards;
  const auto count = static_cast<long>(calls_per_s * options.seconds);
  for (long call = 0; call < count || idle.size() < clients.size();) {
    const auto due = begin + Seconds(static_cast<double>(call) / calls_per_s);
    if (call < count && !idle.empty() && Clock::now() >= due) {
      idle.front()->ReportAndLease(due);
      idle.pop_front();
      ++call;
      continue;
    }
    if (Client* client = Poll(queue)) {
      tally.Count(*client);
      idle.push_back(client);
    }
  }
  tally.Print(begin);
}

// Leases this number of shards and keeps them, to measure a master with many open leases.
void Hold(Client& client, grpc::CompletionQueue& queue) {
  client.ReportAndLease(Clock::now());
  std::printf("%d 0 0\n", Next(queue)->Finish());
  std::fflush(stdout);
  std::getchar();  // waits until the caller has measured
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> given;
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    const size_t at = text.find('=');
    if (text.rfind("--", 0) != 0 || at == std::string::npos) {
      std::fprintf(stderr, "dispatch_load: %s is not --name=value\n", argv[i]);
      return 2;
    }
    given[text.substr(2, at - 2)] = text.substr(at + 1);
  }
  Options options;
  const auto take = [&](const char* name, auto set) {
    if (auto found = given.find(name); found != given.end()) set(found->second);
  };
  take("address", [&](const std::string& v) { options.address = v; });
  take("token", [&](const std::string& v) { options.token = v; });
  take("dataset", [&](const std::string& v) { options.dataset = v; });
  take("connections", [&](const std::string& v) { options.connections = std::stoi(v); });
  take("shards", [&](const std::string& v) { options.shards = std::stoi(v); });
  take("seconds", [&](const std::string& v) { options.seconds = std::stod(v); });
  take("rate", [&](const std::string& v) { options.rate = std::stod(v); });
  // Debian's abseil has deadlock detection on, which takes a tenth of the time here.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  grpc::CompletionQueue queue;
  Clients clients;
  clients.reserve(static_cast<size_t>(options.connections));
  for (int i = 0; i < options.connections; ++i) {
    clients.push_back(std::make_unique<Client>(options, i, queue));
  }
  clients.front()->Register();
  if (given.contains("hold")) {
    Hold(*clients.front(), queue);
  } else if (options.rate > 0) {
    OpenLoop(options, clients, queue);
  } else {
    ClosedLoop(options, clients, queue);
  }
  for (auto& client : clients) client->Leave();
  return 0;
}
