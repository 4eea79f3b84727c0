// Connections that break at any byte, in either direction, under a client with many batches in
// flight: each batch is applied once.

#include <array>
#include <atomic>
#include <deque>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/testing/status_matchers.h"
#include "ps/parameter_server.h"
#include "ps_client/parameter_client.h"
#include "wire/socket.h"

namespace edl::ps_client {
namespace {

// Stands between a client and a server, and breaks each connection after some bytes.
class Saboteur {
 public:
  Saboteur(uint16_t server, uint64_t seed)
      : server_(server), random_(seed), listener_(*wire::ListenTcp("127.0.0.1", 0)) {
    thread_ = std::thread([this] { Run(); });
  }
  ~Saboteur() {
    ended_ = true;
    thread_.join();
  }
  Saboteur(const Saboteur&) = delete;
  Saboteur& operator=(const Saboteur&) = delete;

  uint16_t port() const { return listener_.port; }
  int broken() const { return broken_; }
  // From now on nothing breaks.
  void Relent() { relents_ = true; }

 private:
  struct Pair {
    FileDescriptor client;
    FileDescriptor server;
    size_t left = 0;  // bytes, in both directions, until it breaks
  };

  void Run() {
    while (!ended_) {
      std::vector<pollfd> waiting = {{.fd = listener_.socket.get(), .events = POLLIN}};
      for (const Pair& pair : pairs_) {
        waiting.push_back({.fd = pair.client.get(), .events = POLLIN});
        waiting.push_back({.fd = pair.server.get(), .events = POLLIN});
      }
      poll(waiting.data(), waiting.size(), 20);
      std::vector<Pair> kept;
      for (size_t i = 0; i < pairs_.size(); ++i) {
        const bool lives = (waiting[2 * i + 1].revents == 0 || Carry(pairs_[i], true)) &&
                           (waiting[2 * i + 2].revents == 0 || Carry(pairs_[i], false));
        if (lives) kept.push_back(std::move(pairs_[i]));
      }
      pairs_ = std::move(kept);
      Accept();
    }
  }

  void Accept() {
    Result<std::optional<FileDescriptor>> accepted = wire::Accept(listener_.socket);
    if (!accepted.ok() || !accepted->has_value()) return;
    auto server = wire::ConnectTcp("127.0.0.1", server_, std::chrono::seconds(5));
    if (!server.ok()) return;
    pairs_.push_back({.client = **std::move(accepted),
                      .server = *std::move(server),
                      .left = 200 + random_() % 400'000});
  }

  // False: it is broken now.
  bool Carry(Pair& pair, bool to_server) {
    const int from = to_server ? pair.client.get() : pair.server.get();
    const int to = to_server ? pair.server.get() : pair.client.get();
    std::array<char, 16384> bytes;  // NOLINT: written before it is read
    const size_t most = relents_ ? bytes.size() : std::min(bytes.size(), pair.left);
    const ssize_t got = recv(from, bytes.data(), most, MSG_DONTWAIT);
    if (got <= 0) return got < 0 && (errno == EAGAIN || errno == EINTR);
    for (ssize_t sent = 0; sent < got;) {
      pollfd room{.fd = to, .events = POLLOUT};
      poll(&room, 1, 1000);
      const ssize_t some = send(to, bytes.data() + sent, static_cast<size_t>(got - sent),
                                MSG_DONTWAIT | MSG_NOSIGNAL);
      if (some < 0 && errno != EAGAIN) return false;
      sent += some < 0 ? 0 : some;
    }
    if (relents_) return true;
    pair.left -= static_cast<size_t>(got);
    if (pair.left > 0) return true;
    ++broken_;
    return false;
  }

  const uint16_t server_;
  std::mt19937_64 random_;
  wire::TcpListener listener_;
  std::vector<Pair> pairs_;
  std::atomic<int> broken_ = 0;
  std::atomic<bool> relents_ = false;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

class Faults : public testing::TestWithParam<uint64_t> {};

TEST_P(Faults, ApplyEachBatchOnceWhateverBreaks) {
  constexpr size_t kBatches = 60;
  constexpr size_t kDepth = 4;
  constexpr int64_t kIds = 2000;
  const SystemClock clock;
  const auto server = ps::ParameterServer::Start(
      {.host = "127.0.0.1", .lanes = 2, .incarnation = job::PsIncarnation(1)}, clock);
  Saboteur saboteur((*server)->port(), GetParam());
  auto connected = ParameterClient::Connect({.servers = {{"127.0.0.1", saboteur.port()}}}, clock);
  ASSERT_OK(connected);
  ParameterClient& client = **connected;
  ASSERT_OK(client.Declare({.text = R"({"tables": [{"name": "t", "dim": 4,
                                        "initializer": {"name": "zeros"}}]})",
                            .table_dims = {4}}));
  const wire::ShardKey shard{.ledger = job::LedgerId(1)};
  ASSERT_OK(client.Open(job::LeaseId(1), shard));
  std::vector<int64_t> ids(kIds);
  for (int64_t i = 0; i < kIds; ++i) ids[static_cast<size_t>(i)] = i;
  Keys keys(client.placement());
  keys.Assign(ids);
  const std::vector<float> gradients(kIds * 4, -1);
  std::vector<float> rows(kIds * 4);

  std::deque<ParameterClient::Ticket> flying;
  for (size_t batch = 0; batch < kBatches || !flying.empty();) {
    if (batch < kBatches && flying.size() < kDepth) {
      flying.push_back(client.StartPush(
          {.lease = job::LeaseId(1),
           .shard = shard,
           .batch = batch++,
           .tables = {{.keys = &keys, .gradients = gradients.data(), .learning_rate = 1}}}));
      continue;
    }
    const auto pushed = client.WaitPush(flying.front());
    ASSERT_OK(pushed);
    ASSERT_EQ(pushed->outcome, wire::PushOutcome::kApplied);
    flying.pop_front();
  }
  EXPECT_GT(saboteur.broken(), 5) << "too little broke for this to count";
  saboteur.Relent();
  ASSERT_OK(client.WaitPull(client.StartPull({.tables = {{.keys = &keys, .rows = rows.data()}}})));
  for (const float value : rows) ASSERT_EQ(value, static_cast<float>(kBatches));
}

INSTANTIATE_TEST_SUITE_P(Seeds, Faults, testing::Range<uint64_t>(1, 6));

}  // namespace
}  // namespace edl::ps_client
