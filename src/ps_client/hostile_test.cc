// What callers do to a server that they should not, and what it makes of it.

#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing/await.h"
#include "base/testing/status_matchers.h"
#include "checkpoint/manifest.h"
#include "checkpoint/new_checkpoint.h"
#include "ps/parameter_server.h"
#include "ps_client/ask.h"
#include "ps_client/parameter_client.h"
#include "wire/ring.h"
#include "wire/socket.h"

namespace edl::ps_client {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using wire::MessageType;

constexpr wire::ShardKey kShard{
    .ledger = job::LedgerId(5), .dataset = job::DatasetId(1), .generation = 1};
constexpr size_t kDim = 64;

std::string FrameOf(MessageType type, const std::string& meta) {
  const auto header = wire::EncodeHeader({.type = static_cast<uint8_t>(type),
                                          .request = 1,
                                          .body_bytes = meta.size(),
                                          .meta_bytes = static_cast<uint32_t>(meta.size())});
  return std::string(reinterpret_cast<const char*>(header.data()), header.size()) + meta;
}

void WriteAll(wire::Stream& stream, std::string_view bytes) {
  for (int tries = 0; !bytes.empty() && tries < 1000; ++tries) {
    const iovec piece{const_cast<char*>(bytes.data()), bytes.size()};  // NOLINT: iovec is for both
    const Result<size_t> sent = stream.Write({&piece, 1});
    if (!sent.ok()) return;  // it was closed, which is fine
    bytes.remove_prefix(*sent);
    if (*sent > 0) continue;
    pollfd waiting{.fd = stream.fd(), .events = POLLIN, .revents = 0};
    poll(&waiting, 1, 10);
    stream.OnReady();
  }
}

class HostileTest : public testing::Test {
 protected:
  HostileTest() {
    fs::create_directories(root_);
    Start({});
  }
  ~HostileTest() override {
    if (server_ != nullptr) {
      EXPECT_OK(Ask(MessageType::kState, "")) << "the server did not survive";
    }
    server_.reset();
    fs::remove_all(folder_);
  }

  void Start(ps::ServerOptions options) {
    server_.reset();
    options.host = "127.0.0.1";
    options.lanes = 2;
    options.incarnation = job::PsIncarnation(7);
    if (options.checkpoint_roots.empty()) options.checkpoint_roots = {root_};
    server_ = std::move(*ps::ParameterServer::Start(std::move(options), clock_));
  }
  LinkOptions ToServer() const {
    return {.host = "127.0.0.1", .port = server_->port(), .caller = "a test"};
  }
  // Asks both lanes.
  Result<std::vector<LaneAnswer>> Ask(MessageType type, const std::string& meta) {
    const auto welcome = AskWho(ToServer(), {.timeout = std::chrono::seconds(30)}, clock_);
    if (!welcome.ok()) return welcome.status();
    std::vector<Question> questions;
    for (const LinkOptions& lane : LanesOf(ToServer(), *welcome)) {
      questions.push_back({.to = lane, .meta = meta});
    }
    return ps_client::Ask(type, questions, {.timeout = std::chrono::seconds(30)}, clock_);
  }
  std::unique_ptr<ParameterClient> Connect() {
    auto client = ParameterClient::Connect({.servers = {{"127.0.0.1", server_->port()}}}, clock_);
    EXPECT_OK(client);
    EXPECT_OK((*client)->Declare({.text = R"({"tables": [{"name": "t", "dim": 64}],
                                              "tensors": [{"name": "d", "size": 900000}]})",
                                  .table_dims = {kDim},
                                  .tensors = {{.name = "d", .size = 900000}}}));
    return *std::move(client);
  }
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
  static std::vector<int64_t> Range(int64_t begin, int64_t end) {
    std::vector<int64_t> ids(static_cast<size_t>(end - begin));
    std::iota(ids.begin(), ids.end(), begin);
    return ids;
  }
  static Status PushOne(ParameterClient& client, uint64_t batch) {
    Keys keys(client.placement());
    const std::vector<int64_t> ids = {3};
    keys.Assign(ids);
    const std::vector<float> gradient(kDim, -1);
    return client
        .WaitPush(client.StartPush(
            {.lease = job::LeaseId(1),
             .shard = kShard,
             .batch = batch,
             .tables = {{.keys = &keys, .gradients = gradient.data(), .learning_rate = 1}}}))
        .status();
  }
  size_t Rows() {
    size_t rows = 0;
    for (const ps::LaneStats& lane : server_->State()) rows += lane.rows;
    return rows;
  }
  size_t Connections() {
    size_t sum = 0;
    for (const ps::LaneStats& lane : server_->State()) sum += lane.connections;
    return sum;
  }

  const SystemClock clock_{};
  const fs::path folder_ = fs::path(testing::TempDir()) / fmt::format("hostile-{}", getpid());
  const fs::path root_ = folder_ / "root";
  std::unique_ptr<ps::ParameterServer> server_;
};

TEST_F(HostileTest, SurvivesHellosWhoseAnswersNobodyReads) {
  auto ring = wire::ConnectRing(wire::RingName(server_->port()), 4096);
  ASSERT_OK(ring);
  std::string bytes;
  for (int i = 0; i < 200; ++i) bytes += FrameOf(MessageType::kHello, wire::Encode(wire::Hello{}));
  bytes += FrameOf(MessageType::kHello, wire::Encode(wire::Hello{.lanes_in_job = 2}));
  WriteAll(**ring, bytes);
  // The thread that hears them answers others between its turns; after so many it has heard all.
  for (int i = 0; i < 100; ++i) {
    ASSERT_OK(AskWho(ToServer(), {.timeout = std::chrono::seconds(30)}, clock_));
  }
}

TEST_F(HostileTest, RefusesAHelloAfterManyOthers) {
  auto socket = wire::ConnectTcp("127.0.0.1", server_->port(), std::chrono::seconds(10));
  ASSERT_OK(socket);
  const int fd = socket->get();
  wire::SocketStream stream(std::move(*socket));
  std::string bytes;
  for (int i = 0; i < 65; ++i) bytes += FrameOf(MessageType::kHello, wire::Encode(wire::Hello{}));
  WriteAll(stream, bytes);
  std::string answers;
  pollfd readable{.fd = fd, .events = POLLIN, .revents = 0};
  while (answers.find("65 Hello messages on a connection") == std::string::npos) {
    ASSERT_EQ(poll(&readable, 1, 30'000), 1) << "it was answered";
    std::array<char, 4096> buffer{};
    const ssize_t got = recv(fd, buffer.data(), buffer.size(), 0);
    ASSERT_GT(got, 0);
    answers.append(buffer.data(), static_cast<size_t>(got));
  }
}

TEST_F(HostileTest, RefusesDeeplyNestedText) {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  const auto declared =
      Ask(MessageType::kDeclare,
          wire::Encode(wire::Declare{.text = R"({"tables":[{"name":)" + deep + "}]}"}));
  EXPECT_THAT(declared, StatusIs(Code::kInvalidArgument));
  EXPECT_THAT(declared.status().message(), HasSubstr("levels deep"));
  Start({.managed = true});
  const auto served =
      Ask(MessageType::kServe,
          wire::Encode(wire::Serve{.incarnation = job::PsIncarnation(7),
                                   .covered = R"({"ledger": 5, "datasets": )" + deep + "}"}));
  EXPECT_FALSE(served.ok());
}

TEST_F(HostileTest, WritesNoFileOutsideOfItsRoots) {
  std::ofstream(folder_ / "victim") << "important";
  const auto save = [&](const fs::path& path) {
    return Ask(MessageType::kSave, wire::Encode(wire::Save{.path = path})).status();
  };
  EXPECT_THAT(save(folder_ / "victim"), StatusIs(Code::kPermissionDenied));
  EXPECT_THAT(save(root_ / ".." / "victim"), StatusIs(Code::kPermissionDenied));
  EXPECT_EQ(fs::file_size(folder_ / "victim"), 9U);
  // And none that is there.
  std::ofstream(root_ / "there") << "important";
  EXPECT_THAT(save(root_ / "there"), StatusIs(Code::kAlreadyExists));
  EXPECT_EQ(fs::file_size(root_ / "there"), 9U);
}

TEST_F(HostileTest, SavesNothingWithoutTokenAndRoots) {
  server_.reset();
  server_ = std::move(*ps::ParameterServer::Start(
      {.host = "127.0.0.1", .lanes = 2, .incarnation = job::PsIncarnation(7)}, clock_));
  const auto saved =
      Ask(MessageType::kSave, wire::Encode(wire::Save{.path = root_ / "part"})).status();
  EXPECT_THAT(saved, StatusIs(Code::kPermissionDenied));
  EXPECT_THAT(saved.message(), HasSubstr("--checkpoint_root=DIR"));
  EXPECT_FALSE(fs::exists(root_ / "part"));
}

TEST_F(HostileTest, IsNotHeldUpByARestoreFromAPipe) {
  ASSERT_EQ(mkfifo((root_ / "pipe").c_str(), 0600), 0);
  const auto restored =
      Ask(MessageType::kRestore, wire::Encode(wire::Restore{.paths = {root_ / "pipe"}}));
  EXPECT_THAT(restored, StatusIs(Code::kInvalidArgument));
}

TEST_F(HostileTest, CancelsASaveWhoseCallerDisconnected) {
  const auto client = Connect();
  Pull(*client, Range(0, 50'000));
  const auto is_given_up = [&](const std::string& name) {
    const fs::path part = root_ / name;
    {
      auto socket = wire::ConnectTcp("127.0.0.1", server_->port(), std::chrono::seconds(10));
      wire::SocketStream stream(std::move(*socket));
      WriteAll(stream, FrameOf(MessageType::kHello, wire::Encode(wire::Hello{.lanes_in_job = 2})) +
                           FrameOf(MessageType::kSave, wire::Encode(wire::Save{.path = part})));
      const Time deadline = clock_.Now() + std::chrono::seconds(30);
      while (!fs::exists(part) && clock_.Now() < deadline) usleep(100);
      EXPECT_TRUE(fs::exists(part)) << "the save did not begin";
    }
    // The lane is free again, for one who waits.
    const fs::path checkpoint = root_ / ("checkpoint-" + name);
    for (auto saved = client->Save(checkpoint); !saved.ok(); saved = client->Save(checkpoint)) {
      EXPECT_THAT(saved.status().message(), HasSubstr("is running"));
      fs::remove_all(checkpoint);
    }
    return !fs::exists(part);
  };
  // A save that was done before its connection ended keeps its part: the server cannot
  // distinguish it from a save whose answer is being sent.
  int tries = 1;
  while (!is_given_up(std::to_string(tries))) ASSERT_LT(++tries, 20) << "all were carried out";
}

TEST_F(HostileTest, ForgetsAWorkerThatDiesWhileItsRequestWaits) {
  Start({.managed = true});
  for (const bool shared_memory : {false, true}) {
    {
      auto client = std::move(*ParameterClient::Connect(
          {.servers = {{"127.0.0.1", server_->port()}},
           .transport = shared_memory ? ClientOptions::Transport::kSharedMemory
                                      : ClientOptions::Transport::kTcp},
          clock_));
      const auto pull = client->StartPull({});
      ASSERT_OK(AwaitPolling("a request that waits", [&] {
        client->Move();
        return server_->State()[0].requests_waiting > 0;
      }));
      EXPECT_FALSE(client->IsDone(pull));
    }
    ASSERT_OK(AwaitPolling("the end of the connection, after that of its client",
                           [&] { return Connections() == 0; }));
  }
}

TEST_F(HostileTest, AnswersALargePullInPieces) {
  const auto client = Connect();
  const std::vector<int64_t> ids = Range(0, 60'000);  // 15 MiB
  const std::vector<float> at_once = Pull(*client, ids);
  for (int64_t begin = 0; begin < 60'000; begin += 997) {
    const auto some = Range(begin, std::min<int64_t>(begin + 997, 60'000));
    const auto first = at_once.begin() + begin * static_cast<ptrdiff_t>(kDim);
    ASSERT_EQ(Pull(*client, some),
              std::vector<float>(first, first + static_cast<ptrdiff_t>(some.size() * kDim)));
  }
  std::vector<float> value(900'000);
  std::iota(value.begin(), value.end(), 0.0F);
  ASSERT_OK(client->Put({{.values = value.data()}}));
  std::vector<float> tensor(value.size());
  ASSERT_OK(client->WaitPull(client->StartPull({.tensors = {{.values = tensor.data()}}})));
  EXPECT_EQ(tensor, value);
}

TEST_F(HostileTest, IsRestoredOverRowsThatPullsMadeAndNotOverTrainedOnes) {
  auto client = Connect();
  ASSERT_OK(client->Open(job::LeaseId(1), kShard));
  ASSERT_OK(PushOne(*client, 0));
  ASSERT_OK(client->Save(root_ / "checkpoint"));
  const std::vector<float> trained = Pull(*client, {3});
  EXPECT_THAT(client->Restore(root_ / "checkpoint"), StatusIs(Code::kFailedPrecondition));

  client.reset();
  Start({});
  client = Connect();
  EXPECT_NE(Pull(*client, {3, 4, 5}), trained) << "untrained, from a server that was restarted";
  const auto rows = client->Restore(root_ / "checkpoint");
  ASSERT_OK(rows);
  EXPECT_EQ(*rows, 1U) << "the rows of the pull are gone";
  EXPECT_EQ(Pull(*client, {3}), trained) << "on the connection of before";
  EXPECT_OK(client->Restore(root_ / "checkpoint")) << "nothing was trained since";
}

TEST_F(HostileTest, StaysEmptyAfterADamagedCheckpointAndRestoresAnother) {
  auto client = Connect();
  Pull(*client, Range(0, 10'000));
  ASSERT_OK(client->Save(root_ / "good"));
  ASSERT_OK(client->Save(root_ / "bad"));
  const fs::path part =
      root_ / "bad" / checkpoint::PartName(job::LaneInJob(1), 2, job::PsIncarnation(7));
  {
    std::fstream file(part, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(fs::file_size(part) - 5000));
    file.put('?');
  }
  client.reset();
  Start({});
  client = Connect();
  EXPECT_THAT(client->Restore(root_ / "bad"), StatusIs(Code::kDataLoss));
  EXPECT_EQ(Rows(), 0U) << "one lane has rows of a checkpoint that another could not read";
  const auto rows = client->Restore(root_ / "good");
  ASSERT_OK(rows);
  EXPECT_EQ(*rows, 10'000U);
}

TEST_F(HostileTest, RefusesAManifestThatLacksAPart) {
  auto client = Connect();
  Pull(*client, Range(0, 1000));
  ASSERT_OK(client->Save(root_ / "checkpoint"));
  checkpoint::Manifest manifest = *checkpoint::ReadManifest(root_ / "checkpoint");
  manifest.parts.pop_back();
  ASSERT_OK(checkpoint::WriteManifest(root_ / "checkpoint", manifest));
  client.reset();
  Start({});
  client = Connect();
  const Status status = client->Restore(root_ / "checkpoint").status();
  EXPECT_THAT(status, StatusIs(Code::kDataLoss));
  EXPECT_EQ(Rows(), 0U);
}

}  // namespace
}  // namespace edl::ps_client
