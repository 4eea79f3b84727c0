// A worker that does nothing but pull and push: benchmarks/ps.py runs it against parameter servers
// that it started. Batches of unique ids are made, deduplicated and routed before the clock runs;
// so many of them are in flight at a time. Prints one JSON object.

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <deque>
#include <iostream>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/flags.h"
#include "ps_client/parameter_client.h"

namespace edl::ps_client {
namespace {

using std::chrono::duration;
using std::chrono::steady_clock;

constexpr float kLearningRate = 0.01F;
// Ids are spread over all 64 bits, as hashed features are.
constexpr uint64_t kSpread = 0x9E3779B97F4A7C15;

FlagTable LoadFlags() {
  const auto number = [](std::string name, std::string value, std::string help) {
    return FlagSpec{.name = std::move(name),
                    .type = FlagType::kInt,
                    .default_value = std::move(value),
                    .group = "Load",
                    .help = std::move(help),
                    .at_least = 0};
  };
  return FlagTable({
      {.name = "ports", .default_value = "", .group = "Load", .help = "Of all servers, comma"},
      {.name = "transport",
       .default_value = "tcp",
       .group = "Load",
       .help = "To the servers.",
       .choices = {"tcp", "shm"}},
      {.name = "what",
       .default_value = "pull",
       .group = "Load",
       .help = "To measure.",
       .choices = {"create", "pull", "push", "save", "restore"}},
      {.name = "folder", .default_value = "", .group = "Load", .help = "save, restore: where."},
      {.name = "ids",
       .default_value = "uniform",
       .group = "Load",
       .help = "How they are drawn.",
       .choices = {"uniform", "zipf"}},
      number("dim", "16", "Of the table."),
      number("known", "4194304", "Rows that the table has."),
      number("first", "0", "create: the first of them."),
      number("batch", "53248", "Unique ids."),
      number("depth", "3", "Batches in flight."),
      number("millis", "2000", "How long."),
      number("seed", "1", "Of ids."),
  });
}

struct Load {
  explicit Load(const FlagValues& flags)
      : dim(static_cast<size_t>(flags.Int("dim"))),
        known(static_cast<size_t>(flags.Int("known"))),
        batch(static_cast<size_t>(flags.Int("batch"))),
        depth(static_cast<size_t>(flags.Int("depth"))),
        zipf(flags.String("ids") == "zipf"),
        random(static_cast<uint64_t>(flags.Int("seed"))) {}

  int64_t IdOf(uint64_t rank) const { return static_cast<int64_t>(rank * kSpread); }

  // Zipf with exponent 1.05, by the inverse of its continuous form.
  uint64_t DrawZipf() {
    constexpr double kExponent = 1.05;
    const double u = std::uniform_real_distribution<double>(0, 1)(random);
    const double most = std::pow(static_cast<double>(known), 1 - kExponent);
    const double x = std::pow(u * (most - 1) + 1, 1 / (1 - kExponent));
    return std::min<uint64_t>(static_cast<uint64_t>(x) - 1, known - 1);
  }

  std::vector<int64_t> Draw() {
    std::unordered_set<uint64_t> drawn;
    drawn.reserve(batch * 2);
    std::vector<int64_t> ids;
    while (ids.size() < batch) {
      const uint64_t rank = zipf ? DrawZipf() : random() % known;
      if (drawn.insert(rank).second) ids.push_back(IdOf(rank));
    }
    return ids;
  }

  const size_t dim;
  const size_t known;
  const size_t batch;
  const size_t depth;
  const bool zipf;
  std::mt19937_64 random;
};

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Runs batch after batch with `depth` in flight, and tells what came of it.
template <typename Start, typename Wait, typename Next>
nlohmann::json Measure(size_t depth, const Start& start, const Wait& wait, const Next& next) {
  struct Flying {
    ParameterClient::Ticket ticket;
    size_t slot;
    size_t rows;
    steady_clock::time_point since;
  };
  std::deque<Flying> flying;
  std::vector<double> latencies;
  size_t rows = 0;
  size_t slot = 0;
  const double cpu = CpuSeconds();
  const auto begin = steady_clock::now();
  while (true) {
    const bool more = next();
    if (more) {
      const auto since = steady_clock::now();
      size_t count = 0;
      const ParameterClient::Ticket ticket = start(slot, count);
      flying.push_back({ticket, slot, count, since});
      slot = (slot + 1) % depth;
    }
    if (flying.empty()) break;
    if (flying.size() < depth && more) continue;
    wait(flying.front().ticket);
    latencies.push_back(
        duration<double, std::milli>(steady_clock::now() - flying.front().since).count());
    rows += flying.front().rows;
    flying.pop_front();
  }
  const duration<double> took = steady_clock::now() - begin;
  std::ranges::sort(latencies);
  const auto at = [&](double share) {
    return latencies[std::min(latencies.size() - 1,
                              static_cast<size_t>(share * static_cast<double>(latencies.size())))];
  };
  return {{"rows", rows},
          {"seconds", took.count()},
          {"rows_per_s", static_cast<double>(rows) / took.count()},
          {"p50_ms", at(0.5)},
          {"p99_ms", at(0.99)},
          {"client_cpu_s", CpuSeconds() - cpu},
          {"depth", depth}};
}

int Run(const FlagValues& flags) {
  Load load(flags);
  ClientOptions options{.caller = "ps_load", .timeout = std::chrono::seconds(10)};
  const std::string ports = flags.String("ports") + ",";
  for (size_t at = 0, end = 0; (end = ports.find(',', at)) != std::string::npos; at = end + 1) {
    options.servers.push_back(
        {"127.0.0.1", static_cast<uint16_t>(std::stoi(ports.substr(at, end - at)))});
  }
  if (flags.String("transport") == "shm") {
    options.transport = ClientOptions::Transport::kSharedMemory;
  }
  const SystemClock clock;
  auto connected = ParameterClient::Connect(std::move(options), clock);
  CHECK(connected.ok(), "{}", connected.status().message());
  ParameterClient& client = **connected;
  const Status declared =
      client.Declare({.text = fmt::format(R"({{"seed": 1, "tables": [{{"name": "t{0}", "dim": {0},
          "initializer": {{"name": "uniform"}}, "optimizer": {{"name": "Adagrad"}}}}]}})",
                                          load.dim),
                      .table_dims = {load.dim}});
  CHECK(declared.ok(), "{}", declared.message());

  const std::string& what = flags.String("what");
  if (what == "save") {
    const auto saved = client.Save(flags.String("folder"));
    CHECK(saved.ok(), "{}", saved.status().message());
    std::cout << nlohmann::json{{"bytes", saved->bytes},
                                {"seconds", saved->seconds},
                                {"longest_pause_ms", saved->longest_pause_seconds * 1000}}
              << "\n";
    return 0;
  }
  if (what == "restore") {
    const auto begin = steady_clock::now();
    const auto restored = client.Restore(flags.String("folder"));
    CHECK(restored.ok(), "{}", restored.status().message());
    const duration<double> took = steady_clock::now() - begin;
    std::cout << nlohmann::json{{"rows", *restored}, {"seconds", took.count()}} << "\n";
    return 0;
  }
  const bool creates = what == "create";
  std::vector<Keys> keys;
  if (creates) {
    for (auto rank = static_cast<size_t>(flags.Int("first")); rank < load.known;
         rank += load.batch) {
      std::vector<int64_t> ids;
      for (size_t i = rank; i < std::min(rank + load.batch, load.known); ++i) {
        ids.push_back(load.IdOf(i));
      }
      keys.emplace_back(client.placement()).Assign(ids);
    }
  } else {
    for (int i = 0; i < 64; ++i) keys.emplace_back(client.placement()).Assign(load.Draw());
  }
  std::vector<std::vector<float>> memory(load.depth,
                                         std::vector<float>(load.batch * load.dim, 0.01F));
  const auto deadline = steady_clock::now() + std::chrono::milliseconds(flags.Int("millis"));
  size_t turn = 0;
  const auto next = [&] { return creates ? turn < keys.size() : steady_clock::now() < deadline; };
  nlohmann::json result;
  if (what == "push") {
    const wire::ShardKey shard{.ledger = job::LedgerId(std::random_device()()),
                               .dataset = job::DatasetId(1)};
    CHECK(client.Open(job::LeaseId(1), shard).ok(), "the shard did not open");
    uint64_t batch = 0;
    result = Measure(
        load.depth,
        [&](size_t slot, size_t& rows) {
          const Keys& some = keys[turn++ % keys.size()];
          rows = some.ids().size();
          return client.StartPush({.lease = job::LeaseId(1),
                                   .shard = shard,
                                   .batch = batch++,
                                   .tables = {{.keys = &some,
                                               .gradients = memory[slot].data(),
                                               .learning_rate = kLearningRate}}});
        },
        [&](ParameterClient::Ticket ticket) {
          const auto pushed = client.WaitPush(ticket);
          CHECK(pushed.ok(), "{}", pushed.status().message());
          CHECK(pushed->outcome == wire::PushOutcome::kApplied, "a push was not applied");
        },
        next);
  } else {
    result = Measure(
        load.depth,
        [&](size_t slot, size_t& rows) {
          const Keys& some = keys[turn++ % keys.size()];
          rows = some.ids().size();
          return client.StartPull({.tables = {{.keys = &some, .rows = memory[slot].data()}}});
        },
        [&](ParameterClient::Ticket ticket) {
          const Status pulled = client.WaitPull(ticket);
          CHECK(pulled.ok(), "{}", pulled.message());
        },
        next);
  }
  std::cout << result << "\n";
  return 0;
}

}  // namespace
}  // namespace edl::ps_client

int main(int argc, char** argv) {
  const edl::FlagTable table = edl::ps_client::LoadFlags();
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto flags = edl::ParseFlags(table, arguments);
  CHECK(flags.ok(), "{}", flags.status().message());
  return edl::ps_client::Run(*flags);
}
