#include "ps_client/parameter_client.h"

#include <array>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "base/testing/fake_clock.h"
#include "base/testing/status_matchers.h"
#include "checkpoint/new_checkpoint.h"
#include "ps/parameter_server.h"
#include "wire/frame.h"
#include "wire/socket.h"

namespace edl::ps_client {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Truly;
using Outcome = wire::PushOutcome;
using Transport = ClientOptions::Transport;

constexpr job::LeaseId kLease(9);
constexpr wire::ShardKey kShard{
    .ledger = job::LedgerId(1), .dataset = job::DatasetId(1), .generation = 1};
constexpr size_t kDim = 3;
constexpr size_t kTensorSize = 50000;

Parameters SomeParameters() {
  return {.text = R"({"seed": 5,
            "tables": [{"name": "t", "dim": 3, "initializer": {"name": "uniform"}}],
            "tensors": [{"name": "d", "size": 50000, "optimizer": {"name": "SGD"}}]})",
          .table_dims = {kDim},
          .tensors = {{.name = "d", .size = kTensorSize}}};
}

// The servers of a job.
class Servers {
 public:
  Servers(size_t servers, size_t lanes, std::string token = "secret") {
    for (size_t index = 0; index < servers; ++index) {
      servers_.push_back(
          std::move(*ps::ParameterServer::Start({.host = "127.0.0.1",
                                                 .token = token,
                                                 .lanes = lanes,
                                                 .index = index,
                                                 .servers = servers,
                                                 .incarnation = job::PsIncarnation(index + 1)},
                                                clock_)));
    }
  }

  std::vector<ServerAddress> addresses() const {
    std::vector<ServerAddress> addresses;
    for (const auto& server : servers_) addresses.push_back({"127.0.0.1", server->port()});
    return addresses;
  }
  uint64_t rows() {
    uint64_t sum = 0;
    for (const auto& server : servers_) {
      for (const ps::LaneStats& lane : server->State()) sum += lane.rows;
    }
    return sum;
  }
  ps::ParameterServer& operator[](size_t index) { return *servers_[index]; }
  std::unique_ptr<ps::ParameterServer>& At(size_t index) { return servers_[index]; }

 private:
  const SystemClock clock_{};
  std::vector<std::unique_ptr<ps::ParameterServer>> servers_;
};

class ClientTest : public testing::TestWithParam<Transport> {
 protected:
  std::unique_ptr<ParameterClient> Connect(const Servers& servers) {
    auto client = ParameterClient::Connect({.servers = servers.addresses(),
                                            .token = "secret",
                                            .transport = GetParam(),
                                            .timeout = std::chrono::seconds(30)},
                                           clock_);
    EXPECT_OK(client);
    EXPECT_OK((*client)->Declare(SomeParameters()));
    return *std::move(client);
  }

  // Rows of `ids`, in their order.
  static std::vector<float> Pull(ParameterClient& client, const std::vector<int64_t>& ids) {
    Keys keys(client.placement());
    keys.Assign(ids);
    std::vector<float> rows(keys.ids().size() * kDim);
    EXPECT_OK(
        client.WaitPull(client.StartPull({.tables = {{.keys = &keys, .rows = rows.data()}}})));
    std::vector<float> out;
    for (const int32_t place : keys.places()) {
      const auto begin = rows.begin() + place * static_cast<ptrdiff_t>(kDim);
      out.insert(out.end(), begin, begin + kDim);
    }
    return out;
  }

  // A gradient of -1 for all values of the rows.
  static Result<PushResult> Push(ParameterClient& client, uint64_t batch,
                                 const std::vector<int64_t>& ids, float gradient = -1) {
    Keys keys(client.placement());
    keys.Assign(ids);
    const std::vector<float> gradients(keys.ids().size() * kDim, gradient);
    return client.WaitPush(client.StartPush(
        {.lease = kLease,
         .shard = kShard,
         .batch = batch,
         .tables = {{.keys = &keys, .gradients = gradients.data(), .learning_rate = 1}}}));
  }

  const SystemClock clock_{};
};

std::vector<int64_t> ManyIds() {
  std::vector<int64_t> ids(30000);
  std::iota(ids.begin(), ids.end(), -15000);
  return ids;
}

TEST_P(ClientTest, FindsTheSameRowsOnAnyNumberOfServers) {
  Servers one(1, 1);
  Servers many(3, 2);
  const auto of_one = Connect(one);
  const auto of_many = Connect(many);
  const std::vector<float> rows = Pull(*of_one, ManyIds());
  EXPECT_EQ(Pull(*of_many, ManyIds()), rows);
  EXPECT_EQ(many.rows(), 30000U);
  EXPECT_GT(*std::ranges::max_element(rows), 0.04F);
}

TEST_P(ClientTest, PushesEachBatchOnce) {
  Servers servers(2, 2);
  const auto client = Connect(servers);
  const std::vector<float> before = Pull(*client, {1, 2, 3});
  ASSERT_EQ(client->Open(kLease, kShard)->watermark, 0U);
  EXPECT_EQ(Push(*client, 0, {1, 2, 3})->outcome, Outcome::kApplied);
  EXPECT_EQ(Push(*client, 0, {1, 2, 3})->outcome, Outcome::kApplied);
  const auto ahead = Push(*client, 5, {1, 2, 3});
  EXPECT_EQ(ahead->outcome, Outcome::kAhead);
  EXPECT_EQ(ahead->watermark, 1U);
  const std::vector<float> after = Pull(*client, {1, 2, 3});
  for (size_t i = 0; i < before.size(); ++i) EXPECT_FLOAT_EQ(after[i], before[i] + 1);
}

TEST_P(ClientTest, IsFencedByANewerLease) {
  Servers servers(1, 2);
  const auto old_holder = Connect(servers);
  const auto new_holder = Connect(servers);
  ASSERT_OK(old_holder->Open(kLease, kShard));
  ASSERT_OK(new_holder->Open(kLease.Next(), kShard));
  EXPECT_EQ(Push(*old_holder, 0, {1})->outcome, Outcome::kFenced);
}

TEST_P(ClientTest, HoldsTensorsOverAllLanes) {
  Servers servers(2, 2);
  const auto client = Connect(servers);
  std::vector<float> values(kTensorSize);
  std::iota(values.begin(), values.end(), 0.0F);
  EXPECT_EQ(*client->Put({{.values = values.data()}}), wire::BlocksOf(kTensorSize));
  EXPECT_EQ(*client->Put({{.values = values.data()}}), 0U);
  ASSERT_OK(client->Open(kLease, kShard));
  const std::vector<float> gradients(kTensorSize, 2);
  const auto pushed = client->WaitPush(
      client->StartPush({.lease = kLease,
                         .shard = kShard,
                         .tensors = {{.gradients = gradients.data(), .learning_rate = 0.5F}}}));
  ASSERT_EQ(pushed->outcome, Outcome::kApplied);
  std::vector<float> pulled(kTensorSize);
  ASSERT_OK(client->WaitPull(client->StartPull({.tensors = {{.values = pulled.data()}}})));
  for (size_t i = 0; i < kTensorSize; ++i) ASSERT_EQ(pulled[i], values[i] - 1) << i;
}

TEST_P(ClientTest, HasManyOperationsInFlight) {
  Servers servers(1, 2);
  const auto client = Connect(servers);
  Keys keys(client->placement());
  keys.Assign(ManyIds());
  constexpr size_t kDepth = 6;
  std::vector<std::vector<float>> rows(kDepth, std::vector<float>(30000 * kDim));
  const std::vector<float> gradients(30000 * kDim, -1);
  ASSERT_OK(client->Open(kLease, kShard));
  std::vector<ParameterClient::Ticket> pulls;
  std::vector<ParameterClient::Ticket> pushes;
  for (size_t i = 0; i < kDepth; ++i) {
    pulls.push_back(client->StartPull({.tables = {{.keys = &keys, .rows = rows[i].data()}}}));
    pushes.push_back(client->StartPush(
        {.lease = kLease,
         .shard = kShard,
         .batch = i,
         .tables = {{.keys = &keys, .gradients = gradients.data(), .learning_rate = 1}}}));
  }
  // The last first: the others are done by then.
  for (size_t i = kDepth; i-- > 0;) {
    EXPECT_EQ(client->WaitPush(pushes[i])->outcome, Outcome::kApplied);
    EXPECT_OK(client->WaitPull(pulls[i]));
  }
  for (size_t i = 0; i < kDepth; ++i) {
    EXPECT_NEAR(rows[i][0], rows[0][0] + static_cast<float>(i), 1e-4) << "a pull passed a push";
  }
}

TEST_P(ClientTest, CountsABatchWithNanAndChangesNothing) {
  Servers servers(1, 2);
  const auto client = Connect(servers);
  ASSERT_OK(client->Open(kLease, kShard));
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    const auto pushed = Push(*client, std::isnan(bad) ? 0 : 1, {1, 2}, bad);
    EXPECT_EQ(pushed->outcome, Outcome::kApplied);
    EXPECT_TRUE(pushed->refused);
  }
  EXPECT_EQ(servers.rows(), 0U);
  EXPECT_EQ(servers[0].State()[0].refused_batches, 2U);
  EXPECT_FALSE(Push(*client, 2, {1, 2})->refused);
}

TEST_P(ClientTest, WaitsForAServerThatIsAwayAndAsksAgain) {
  Servers servers(1, 1);
  auto connected = ParameterClient::Connect({.servers = servers.addresses(),
                                             .token = "secret",
                                             .transport = GetParam(),
                                             .follows_restarts = true},
                                            clock_);
  ASSERT_OK(connected);
  const std::unique_ptr<ParameterClient> client = *std::move(connected);
  ASSERT_OK(client->Declare(SomeParameters()));
  const uint16_t port = servers[0].port();
  const std::vector<float> before = Pull(*client, {1, 2});
  ASSERT_OK(client->Open(kLease, kShard));
  servers.At(0).reset();
  Keys keys(client->placement());
  keys.Assign(std::vector<int64_t>{1, 2});
  std::vector<float> rows(2 * kDim);
  const std::vector<float> gradients(2 * kDim, -1);
  const auto pull = client->StartPull({.tables = {{.keys = &keys, .rows = rows.data()}}});
  const auto push = client->StartPush(
      {.lease = kLease,
       .shard = kShard,
       .tables = {{.keys = &keys, .gradients = gradients.data(), .learning_rate = 1}}});
  auto restarted = ps::ParameterServer::Start(
      {.host = "127.0.0.1", .port = port, .token = "secret", .incarnation = job::PsIncarnation(77)},
      clock_);
  ASSERT_OK(restarted);

  ASSERT_OK(client->WaitPull(pull));
  const auto pushed = client->WaitPush(push);

  EXPECT_EQ(rows, before) << "rows are made of their ids, on any server";
  EXPECT_EQ(pushed->outcome, Outcome::kNotOpen) << "the new server knows of no shard";
  EXPECT_THAT(client->incarnations(), ElementsAre(job::PsIncarnation(77)));
}

TEST_P(ClientTest, GivesUpAServerThatIsAwayTooLong) {
  Servers servers(1, 1);
  FakeClock clock;
  auto client = ParameterClient::Connect({.servers = servers.addresses(),
                                          .token = "secret",
                                          .transport = GetParam(),
                                          .timeout = std::chrono::minutes(10)},
                                         clock);
  ASSERT_OK(client);
  ASSERT_OK((*client)->Declare(SomeParameters()));
  const std::string port = std::to_string(servers[0].port());
  servers.At(0).reset();
  const ParameterClient::Ticket ticket = (*client)->StartPull({});
  clock.Advance(std::chrono::minutes(11));
  const Status pulled = (*client)->WaitPull(ticket);
  EXPECT_THAT(pulled, StatusIs(Code::kUnavailable));
  EXPECT_THAT(pulled.message(), HasSubstr(port));
}

TEST_P(ClientTest, CanBeStoppedWhileItWaits) {
  Servers servers(1, 1);
  std::atomic<bool> stop = false;
  auto client = ParameterClient::Connect(
      {.servers = servers.addresses(), .token = "secret", .transport = GetParam(), .stop = &stop},
      clock_);
  ASSERT_OK(client);
  ASSERT_OK((*client)->Declare(SomeParameters()));
  servers.At(0).reset();
  const ParameterClient::Ticket ticket = (*client)->StartPull({});
  EXPECT_FALSE((*client)->IsDone(ticket));
  stop = true;
  EXPECT_THAT((*client)->WaitPull(ticket), StatusIs(Code::kCancelled));
  EXPECT_THAT((*client)->Open(kLease, kShard), StatusIs(Code::kCancelled));
}

TEST_P(ClientTest, IsToldWhatIsWrongWithItsToken) {
  Servers servers(1, 1);
  const auto client = ParameterClient::Connect(
      {.servers = servers.addresses(), .token = "guess", .transport = GetParam()}, clock_);
  EXPECT_THAT(client, StatusIs(Code::kUnauthenticated));
}

TEST_P(ClientTest, IsToldOfServersInAnotherOrder) {
  Servers servers(2, 1);
  auto addresses = servers.addresses();
  std::swap(addresses[0], addresses[1]);
  const auto client = ParameterClient::Connect(
      {.servers = addresses, .token = "secret", .transport = GetParam()}, clock_);
  EXPECT_THAT(client, StatusIs(Code::kFailedPrecondition));
}

TEST_P(ClientTest, IsToldWhatIsWrongWithItsDeclaration) {
  Servers servers(1, 1);
  const auto first = Connect(servers);
  auto client = std::move(*ParameterClient::Connect(
      {.servers = servers.addresses(), .token = "secret", .transport = GetParam()}, clock_));
  Parameters other = SomeParameters();
  other.text = R"({"tables": [{"name": "t", "dim": 4}]})";
  const Status declared = client->Declare(other);
  EXPECT_THAT(declared, StatusIs(Code::kFailedPrecondition));
  EXPECT_THAT(declared.message(), HasSubstr("table 't' was already declared"));
}

class CheckpointTest : public ClientTest {
 protected:
  ~CheckpointTest() override { std::filesystem::remove_all(folder_); }
  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / fmt::format("client-{}", getpid());
};

TEST_P(CheckpointTest, IsRestoredIntoAnotherNumberOfServers) {
  Servers servers(2, 2);
  const auto client = Connect(servers);
  const std::vector<float> values(kTensorSize, 4);
  ASSERT_OK(client->Put({{.values = values.data()}}));
  ASSERT_OK(client->Open(kLease, kShard));
  ASSERT_EQ(Push(*client, 0, ManyIds())->outcome, Outcome::kApplied);

  const auto saved = client->Save(folder_);
  ASSERT_OK(saved);
  EXPECT_GT(saved->bytes, 30000U * kDim * sizeof(float));
  EXPECT_THAT(client->Save(folder_), StatusIs(Code::kAlreadyExists));

  Servers other(3, 1);
  const auto restored = Connect(other);
  const auto rows = restored->Restore(folder_);
  ASSERT_OK(rows);
  EXPECT_EQ(*rows, 30000U);
  EXPECT_EQ(Pull(*restored, ManyIds()), Pull(*client, ManyIds()));
  EXPECT_EQ(restored->Open(kLease.Next(), kShard)->watermark, 1U) << "what was applied is known";
  EXPECT_EQ(*restored->Put({{.values = values.data()}}), 0U) << "the tensor has its value";
  EXPECT_THAT(restored->Restore(folder_), StatusIs(Code::kFailedPrecondition));
}

TEST_P(CheckpointTest, IsTakenWhileOthersPushOverAFullBuffer) {
  // A buffer that a single chunk fills: pushes have to wait for the disk.
  const SystemClock clock;
  auto server = ps::ParameterServer::Start(
      {.host = "127.0.0.1", .token = "secret", .save_buffer_bytes = 1}, clock);
  ASSERT_OK(server);
  const auto connect = [&] {
    auto client = ParameterClient::Connect(
        {.servers = {{"127.0.0.1", (*server)->port()}}, .token = "secret", .transport = GetParam()},
        clock_);
    EXPECT_OK((*client)->Declare(SomeParameters()));
    return *std::move(client);
  };
  const auto client = connect();
  ASSERT_OK(client->Open(kLease, kShard));
  uint64_t batch = 0;
  ASSERT_EQ(Push(*client, batch++, ManyIds())->outcome, Outcome::kApplied);
  // Whether a push comes in the moment in which the buffer is full is chance: until it did.
  std::atomic<bool> done = false;
  std::thread saver([&] {
    const auto other = connect();
    for (int i = 0; i < 1000 && (*server)->State()[0].waits_for_saves == 0; ++i) {
      const auto saved = other->Save(folder_);
      EXPECT_OK(saved);
      std::filesystem::remove_all(folder_);
    }
    done = true;
  });
  Keys keys(client->placement());
  keys.Assign(ManyIds());
  const std::vector<float> gradients(30000 * kDim, -1);
  const auto push = [&] {
    return client->StartPush(
        {.lease = kLease,
         .shard = kShard,
         .batch = batch++,
         .tables = {{.keys = &keys, .gradients = gradients.data(), .learning_rate = 1}}});
  };
  while (!done) {
    const std::array<ParameterClient::Ticket, 2> pushes = {push(), push()};
    for (const ParameterClient::Ticket ticket : pushes) {
      ASSERT_EQ(client->WaitPush(ticket)->outcome, Outcome::kApplied);
    }
  }
  saver.join();
  EXPECT_GT((*server)->State()[0].waits_for_saves, 0U);
  EXPECT_NEAR(Pull(*client, {5})[0], static_cast<float>(batch), 0.1F);
}

TEST_P(CheckpointTest, ThatCannotBeWrittenIsAnErrorAndTheServerGoesOn) {
  Servers servers(1, 1);
  const auto client = Connect(servers);
  std::filesystem::create_directories(
      folder_ /
      checkpoint::PartName(job::LaneInJob(0), 1, job::PsIncarnation(1)));  // the name of the file
  const Status saved = client->Save(folder_).status();
  EXPECT_FALSE(saved.ok());
  EXPECT_THAT(saved.message(), HasSubstr("part-0000-of-0001-"));
  std::filesystem::remove_all(folder_);
  EXPECT_OK(client->Save(folder_));
}

TEST_P(CheckpointTest, ThatIsDamagedIsRefused) {
  Servers servers(1, 1);
  const auto client = Connect(servers);
  Pull(*client, {1, 2, 3});
  ASSERT_OK(client->Save(folder_));
  {
    std::fstream part(folder_ / checkpoint::PartName(job::LaneInJob(0), 1, job::PsIncarnation(1)),
                      std::ios::in | std::ios::out | std::ios::binary);
    part.seekp(100);
    part.put('?');
  }
  Servers other(1, 1);
  const auto restored = Connect(other);
  const Status status = restored->Restore(folder_).status();
  EXPECT_THAT(status, StatusIs(Code::kDataLoss));
  EXPECT_THAT(status.message(),
              HasSubstr(checkpoint::PartName(job::LaneInJob(0), 1, job::PsIncarnation(1)) +
                        " is damaged at byte 8"));
}

constexpr auto kNameOfTransport = [](const auto& info) {
  switch (info.param) {
    case Transport::kTcp:
      return "Tcp";
    case Transport::kSharedMemory:
      return "SharedMemory";
    case Transport::kAuto:
      break;
  }
  return "Auto";
};
INSTANTIATE_TEST_SUITE_P(All, CheckpointTest,
                         testing::Values(Transport::kTcp, Transport::kSharedMemory),
                         kNameOfTransport);
INSTANTIATE_TEST_SUITE_P(All, ClientTest,
                         testing::Values(Transport::kTcp, Transport::kSharedMemory,
                                         Transport::kAuto),
                         kNameOfTransport);

// --- what else may come to a server's port ---

// Sends bytes and returns all that comes back until the server ends the connection.
std::string Say(uint16_t port, std::string_view bytes, bool close_at_once = false) {
  auto socket = wire::ConnectTcp("127.0.0.1", port, std::chrono::seconds(10));
  EXPECT_OK(socket);
  wire::SocketStream stream(std::move(*socket));
  iovec piece{const_cast<char*>(bytes.data()), bytes.size()};  // NOLINT: iovec has no other form
  EXPECT_EQ(*stream.Write({&piece, 1}), bytes.size());
  if (close_at_once) return {};
  std::string heard;
  while (true) {
    pollfd waiting{.fd = stream.fd(), .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, 10000) <= 0) return heard + " and then nothing";
    std::array<char, 4096> room{};
    const iovec buffers{room.data(), room.size()};
    const auto got = stream.Read({&buffers, 1});
    if (!got.ok()) return heard;
    heard.append(room.data(), *got);
    if (heard.size() > wire::FrameHeader::kBytes) return heard;
  }
}

std::string HeaderBytes(const wire::FrameHeader& header) {
  const auto bytes = wire::EncodeHeader(header);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class ServerTest : public testing::Test {
 protected:
  // The server is none the worse for it.
  ~ServerTest() override {
    auto client =
        ParameterClient::Connect({.servers = servers_.addresses(), .token = "secret"}, clock_);
    EXPECT_OK(client);
    EXPECT_OK((*client)->Declare(SomeParameters()));
  }

  const SystemClock clock_{};
  Servers servers_{1, 2};
  const uint16_t port_ = servers_[0].port();
};

TEST_F(ServerTest, RefusesWhatIsNoFrame) {
  EXPECT_THAT(Say(port_, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), HasSubstr("not a frame"));
}

TEST_F(ServerTest, RefusesAnotherVersionByName) {
  std::string header = HeaderBytes({.version = 9, .type = 1});
  EXPECT_THAT(Say(port_, header), HasSubstr("a frame has version 9"));
}

TEST_F(ServerTest, RefusesAWrongLengthBeforeItAllocatesMemory) {
  EXPECT_THAT(Say(port_, HeaderBytes({.type = 1, .body_bytes = uint64_t{1} << 60})),
              HasSubstr("and the limit is"));
}

TEST_F(ServerTest, RefusesAConnectionWithoutHello) {
  EXPECT_THAT(Say(port_, HeaderBytes({.type = 4})), HasSubstr("begins with Hello"));
}

TEST_F(ServerTest, ServesOthersAfterACallerThatDiedWithinAFrame) {
  Say(port_, HeaderBytes({.type = 1, .body_bytes = 1000}).append("half"), true);
  Say(port_, "EP", true);

  ASSERT_OK_AND_ASSIGN(
      const auto client,
      ParameterClient::Connect({.servers = servers_.addresses(), .token = "secret"}, clock_));
  ASSERT_OK(client->Declare(SomeParameters()));
  Keys keys(client->placement());
  keys.Assign(std::vector<int64_t>{1, 2, 3});
  std::vector<float> rows(keys.ids().size() * kDim, std::nanf(""));
  ASSERT_OK(
      client->WaitPull(client->StartPull({.tables = {{.keys = &keys, .rows = rows.data()}}})));
  EXPECT_THAT(rows, Each(Truly([](float value) { return std::isfinite(value); })));
}

TEST_F(ServerTest, RefusesAMessageThatItDoesNotKnowAndGoesOn) {
  const std::string meta = wire::Encode(wire::Hello{.token = "secret", .lanes_in_job = 2});
  std::string bytes = HeaderBytes({.type = 1,
                                   .request = 1,
                                   .body_bytes = meta.size(),
                                   .meta_bytes = static_cast<uint32_t>(meta.size())});
  bytes += meta + HeaderBytes({.type = 99, .request = 2});
  std::string heard;
  auto socket = wire::ConnectTcp("127.0.0.1", port_, std::chrono::seconds(10));
  wire::SocketStream stream(std::move(*socket));
  const iovec piece{bytes.data(), bytes.size()};
  ASSERT_EQ(*stream.Write({&piece, 1}), bytes.size());
  while (heard.find("unknown message type 99") == std::string::npos) {
    pollfd waiting{.fd = stream.fd(), .events = POLLIN, .revents = 0};
    ASSERT_GT(poll(&waiting, 1, 10000), 0) << heard;
    std::array<char, 4096> room{};
    const iovec buffers{room.data(), room.size()};
    const auto got = stream.Read({&buffers, 1});
    ASSERT_OK(got) << "the connection was ended";
    heard.append(room.data(), *got);
  }
}

}  // namespace
}  // namespace edl::ps_client
