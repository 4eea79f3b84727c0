// Loads a running master's Exchange call, for benchmarks/dispatch.py: C connections, each with one
// call in flight that reports the shards of the last answer and leases up to S more. With --rate,
// calls start by the clock whether or not earlier ones were answered (open loop), and latency
// counts from when a call should have started. Prints "shards_per_s p50_ms p99_ms".
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "elasticdl/v1/master.grpc.pb.h"
#include <grpcpp/grpcpp.h>

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
  double rate = 0;  // shards a second over all connections; 0: as fast as answers come
  long size = 100'000'000'000;
};

void Authorize(grpc::ClientContext& context, const Options& options) {
  context.AddMetadata("authorization", "Bearer " + options.token);
}

[[noreturn]] void Die(const char* what, const grpc::Status& status) {
  std::fprintf(stderr, "dispatch_load: %s: %s\n", what, status.error_message().c_str());
  std::exit(1);
}

// One connection: joins, then keeps exchanging.
class Client {
 public:
  Client(const Options& options, int number) : options_(options) {
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

  // Starts the next call; `done(shards)` runs on a gRPC thread when it is answered.
  void Exchange(std::function<void(int)> done) {
    context_ = std::make_unique<grpc::ClientContext>();
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
    stub_->async()->Exchange(context_.get(), &request_, &response_,
                             [this, done = std::move(done)](const grpc::Status& status) {
                               if (!status.ok()) Die("Exchange", status);
                               done(response_.shards_size());
                             });
  }

  // Lets the master forget this process.
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
  std::unique_ptr<pb::Master::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  pb::ExchangeRequest request_;
  pb::ExchangeResponse response_;
  uint64_t incarnation_ = 0;
  uint64_t number_ = 0;
};

struct Tally {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<double> latencies_ms;
  long shards = 0;
  int open = 0;
  std::deque<Client*> idle;
};

void Print(Tally& tally, double seconds) {
  std::sort(tally.latencies_ms.begin(), tally.latencies_ms.end());
  const auto at = [&](double share) {
    const size_t n = tally.latencies_ms.size();
    return n == 0 ? 0.0 : tally.latencies_ms[std::min(n - 1, static_cast<size_t>(share * n))];
  };
  std::printf("%.0f %.3f %.3f\n", static_cast<double>(tally.shards) / seconds, at(0.5), at(0.99));
}

double Milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

void ClosedLoop(const Options& options, std::vector<std::unique_ptr<Client>>& clients) {
  Tally tally;
  const auto begin = Clock::now();
  const auto end = begin + std::chrono::duration_cast<Clock::duration>(
                               std::chrono::duration<double>(options.seconds));
  std::function<void(Client*)> next = [&](Client* client) {
    const auto start = Clock::now();
    client->Exchange([&, client, start](int shards) {
      const auto now = Clock::now();
      {
        const std::lock_guard lock(tally.mutex);
        tally.latencies_ms.push_back(Milliseconds(now - start));
        tally.shards += shards;
        if (now >= end) {
          --tally.open;
          tally.changed.notify_all();
          return;
        }
      }
      next(client);
    });
  };
  tally.open = static_cast<int>(clients.size());
  for (auto& client : clients) next(client.get());
  std::unique_lock lock(tally.mutex);
  tally.changed.wait(lock, [&] { return tally.open == 0; });
  Print(tally, std::chrono::duration<double>(Clock::now() - begin).count());
}

void OpenLoop(const Options& options, std::vector<std::unique_ptr<Client>>& clients) {
  Tally tally;
  for (auto& client : clients) tally.idle.push_back(client.get());
  const auto begin = Clock::now();
  const double calls_per_s = options.rate / options.shards;
  const auto count = static_cast<long>(calls_per_s * options.seconds);
  for (long call = 0; call < count; ++call) {
    const auto due = begin + std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double>(call / calls_per_s));
    std::this_thread::sleep_until(due);
    std::unique_lock lock(tally.mutex);
    tally.changed.wait(lock, [&] { return !tally.idle.empty(); });
    Client* client = tally.idle.front();
    tally.idle.pop_front();
    lock.unlock();
    client->Exchange([&tally, client, due](int shards) {
      const std::lock_guard lock(tally.mutex);
      tally.latencies_ms.push_back(Milliseconds(Clock::now() - due));
      tally.shards += shards;
      tally.idle.push_back(client);
      tally.changed.notify_all();
    });
  }
  std::unique_lock lock(tally.mutex);
  tally.changed.wait(lock, [&] { return tally.idle.size() == clients.size(); });
  Print(tally, std::chrono::duration<double>(Clock::now() - begin).count());
}

// Leases so many shards and keeps them: for the size of a master with many open leases.
void Hold(Client& client) {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  client.Exchange([&](int shards) {
    const std::lock_guard lock(mutex);
    std::printf("%d 0 0\n", shards);
    std::fflush(stdout);
    done = true;
    changed.notify_all();
  });
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return done; });
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
  std::vector<std::unique_ptr<Client>> clients;
  clients.reserve(static_cast<size_t>(options.connections));
  for (int i = 0; i < options.connections; ++i) {
    clients.push_back(std::make_unique<Client>(options, i));
  }
  clients.front()->Register();
  if (given.contains("hold")) {
    Hold(*clients.front());
    std::getchar();  // until the caller has looked
  } else if (options.rate > 0) {
    OpenLoop(options, clients);
  } else {
    ClosedLoop(options, clients);
  }
  for (auto& client : clients) client->Leave();
  return 0;
}
