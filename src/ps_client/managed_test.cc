// A server that waits for a master's word, and what it refuses meanwhile.

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "checkpoint/new_checkpoint.h"
#include "checkpoint/shard_set.h"
#include "ps/server.h"
#include "ps_client/ask.h"
#include "ps_client/client.h"

namespace edl::ps_client {
namespace {

using ::testing::HasSubstr;
using wire::MessageType;

constexpr uint64_t kLife = 7;
constexpr wire::ShardKey kShard{.ledger = 5, .dataset = 1, .generation = 1};

class ManagedTest : public testing::Test {
 protected:
  ManagedTest() { Start(); }
  ~ManagedTest() override { std::filesystem::remove_all(folder_); }

  void Start(uint64_t life = kLife, Duration fence_after = std::chrono::minutes(10)) {
    server_.reset();
    server_ = std::move(*ps::Server::Start({.host = "127.0.0.1",
                                            .lanes = 2,
                                            .incarnation = life,
                                            .managed = true,
                                            .checkpoint_roots = {folder_},
                                            .fence_after = fence_after},
                                           clock_));
  }

  // Asks both lanes, as a master does.
  Result<std::vector<LaneAnswer>> AskAll(MessageType type, const std::string& meta) {
    const LinkOptions to{.host = "127.0.0.1", .port = server_->port(), .caller = "a test"};
    const auto welcome = AskWho(to, {.timeout = std::chrono::seconds(10)}, clock_);
    if (!welcome.ok()) return welcome.status();
    std::vector<Question> questions;
    for (const LinkOptions& lane : LanesOf(to, *welcome)) {
      questions.push_back({.to = lane, .meta = meta});
    }
    return Ask(type, questions, {.timeout = std::chrono::seconds(10)}, clock_);
  }
  Status Serve(wire::Serve serve) {
    serve.incarnation = serve.incarnation == 0 ? kLife : serve.incarnation;
    if (serve.covered.empty()) serve.covered = checkpoint::ShardSet{.ledger = 5}.ToJson();
    return AskAll(MessageType::kServe, wire::Encode(serve)).status();
  }
  Status Restore(const wire::Restore& restore) {
    return AskAll(MessageType::kRestore, wire::Encode(restore)).status();
  }
  wire::StateAnswer StateOfFirstLane() {
    const auto answers = AskAll(MessageType::kState, "");
    wire::StateAnswer state;
    EXPECT_TRUE(answers.ok()) << answers.status();
    if (answers.ok()) {
      EXPECT_EQ(wire::Decode(std::as_bytes(std::span(answers->front().meta)), state), Ok());
    }
    return state;
  }

  std::unique_ptr<Client> Connect() {
    return std::move(*Client::Connect({.servers = {{"127.0.0.1", server_->port()}}}, clock_));
  }
  static Parameters SomeParameters() {
    return {.text = R"({"tables": [{"name": "t", "dim": 1}]})", .table_dims = {1}};
  }
  // Adds 1 to row 3 of the client's table, at that batch.
  static Result<PushResult> Push(Client& client, uint64_t lease, uint64_t batch) {
    Keys keys(client.placement());
    const std::vector<int64_t> ids = {3};
    keys.Assign(ids);
    const float gradient = -1;
    return client.WaitPush(client.StartPush(
        {.lease = lease,
         .shard = kShard,
         .batch = batch,
         .tables = {{.keys = &keys, .gradients = &gradient, .learning_rate = 1}}}));
  }
  const SystemClock clock_{};
  std::unique_ptr<ps::Server> server_;
  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / fmt::format("managed-{}", getpid());
};

TEST_F(ManagedTest, KeepsWorkersWaitingForTheMastersWord) {
  const auto client = Connect();
  const auto pull = client->StartPull({});
  while (server_->State()[0].requests_waiting == 0) client->Move();
  EXPECT_EQ(StateOfFirstLane().ps_epoch, 0U) << "a master is answered";
  EXPECT_FALSE(client->IsDone(pull));

  ASSERT_EQ(Serve({.ps_epoch = 1}), Ok());

  EXPECT_EQ(client->WaitPull(pull), Ok());
  EXPECT_EQ(server_->State()[0].requests_waiting, 0U);
}

TEST_F(ManagedTest, LetsNobodyOpenBeforeTheFirstCheckpoint) {
  ASSERT_EQ(Serve({.ps_epoch = 1}), Ok());
  std::thread worker([&] {
    const auto client = Connect();
    const auto opened = client->Open(1, kShard);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(opened->ps_epoch, 1U);
  });
  while (StateOfFirstLane().opens_waiting == 0) {
  }

  ASSERT_EQ(Serve({.ps_epoch = 1, .may_push = true}), Ok());

  worker.join();
  EXPECT_EQ(StateOfFirstLane().opens_waiting, 0U);
}

TEST_F(ManagedTest, RefusesWhatIsMeantForAnotherLife) {
  EXPECT_THAT(Serve({.incarnation = kLife + 1, .ps_epoch = 1}).message(), HasSubstr("incarnation"));
  EXPECT_THAT(Restore({.incarnation = kLife + 1, .ps_epoch = 1}).message(),
              HasSubstr("incarnation"));
}

TEST_F(ManagedTest, RefusesWhatADeadMasterAskedLate) {
  ASSERT_EQ(Restore({.incarnation = kLife, .ps_epoch = 2}), Ok());
  EXPECT_THAT(Restore({.incarnation = kLife, .ps_epoch = 1}).message(), HasSubstr("has begun"));
  EXPECT_THAT(Serve({.ps_epoch = 1}).message(), HasSubstr("is over"));
  EXPECT_EQ(Serve({.ps_epoch = 2}), Ok());
}

TEST_F(ManagedTest, IsNotSavedBeforeItServes) {
  const auto saved = AskAll(MessageType::kSave, wire::Encode(wire::Save{.path = folder_}));
  EXPECT_EQ(saved.status().code(), Code::kFailedPrecondition);
}

TEST_F(ManagedTest, IsRestoredAgainUntilItServesAndNotAfter) {
  ASSERT_EQ(Serve({.ps_epoch = 1, .may_push = true}), Ok());
  auto client = Connect();
  ASSERT_EQ(client->Declare(SomeParameters()), Ok());
  ASSERT_TRUE(client->Open(1, kShard).ok());
  ASSERT_TRUE(Push(*client, 1, 0).ok());
  ASSERT_TRUE(client->Save(folder_).ok());
  EXPECT_EQ(Restore({.incarnation = kLife, .ps_epoch = 2}).code(), Code::kFailedPrecondition);

  client.reset();
  Start(kLife + 1);
  const wire::Restore restore{.incarnation = kLife + 1,
                              .ps_epoch = 2,
                              .paths = {folder_ / checkpoint::PartName(0, 2, kLife),
                                        folder_ / checkpoint::PartName(1, 2, kLife)}};
  ASSERT_EQ(Restore(restore), Ok());
  ASSERT_EQ(Restore(restore), Ok()) << "a first attempt may have been given up half-way";
  ASSERT_EQ(Serve({.incarnation = kLife + 1, .ps_epoch = 2, .may_push = true}), Ok());

  client = Connect();
  ASSERT_EQ(client->Declare(SomeParameters()), Ok());
  const auto opened = client->Open(2, kShard);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->mark, 1U);
  EXPECT_EQ(opened->ps_epoch, 2U);
}

TEST_F(ManagedTest, TakesNoMarksFromAnotherJob) {
  ASSERT_EQ(Serve({.ps_epoch = 1, .may_push = true}), Ok());
  auto client = Connect();
  ASSERT_EQ(client->Declare(SomeParameters()), Ok());
  ASSERT_TRUE(client->Open(1, kShard).ok());
  ASSERT_TRUE(Push(*client, 1, 0).ok());
  ASSERT_TRUE(client->Save(folder_).ok());
  client.reset();
  Start();
  ASSERT_EQ(Restore({.incarnation = kLife,
                     .ps_epoch = 1,
                     .with_marks = false,
                     .paths = {folder_ / checkpoint::PartName(0, 2, kLife),
                               folder_ / checkpoint::PartName(1, 2, kLife)}}),
            Ok());
  ASSERT_EQ(Serve({.ps_epoch = 1, .may_push = true}), Ok());

  client = Connect();
  ASSERT_EQ(client->Declare(SomeParameters()), Ok());
  EXPECT_EQ(client->Open(1, kShard)->mark, 0U);
  EXPECT_EQ(server_->State()[0].rows + server_->State()[1].rows, 1U);
}

TEST_F(ManagedTest, TakesNoPushesWhileItLeavesAndWaitsToBeReleased) {
  EXPECT_TRUE(server_->IsReleased()) << "it has nothing yet";
  ASSERT_EQ(Serve({.ps_epoch = 1, .may_push = true}), Ok());
  EXPECT_FALSE(server_->IsReleased());
  const auto client = Connect();
  ASSERT_EQ(client->Declare(SomeParameters()), Ok());
  ASSERT_TRUE(client->Open(1, kShard).ok());
  ASSERT_TRUE(Push(*client, 1, 0).ok());

  server_->Leave();
  const auto push = client->StartPush({.lease = 1, .shard = kShard, .batch = 1});
  client->Move();
  EXPECT_TRUE(StateOfFirstLane().leaving);
  EXPECT_EQ(server_->State()[0].pushes, 1U);
  EXPECT_FALSE(client->IsDone(push));
  EXPECT_TRUE(Connect()->Save(folder_).ok()) << "it is saved all the same";

  ASSERT_EQ(Serve({.ps_epoch = 1, .may_push = true, .released = true}), Ok());
  EXPECT_TRUE(server_->IsReleased());
}

TEST_F(ManagedTest, TakesNoPushesWhileItsMasterIsAway) {
  Start(kLife, std::chrono::seconds(2));
  ASSERT_EQ(Serve({.ps_epoch = 1, .may_push = true}), Ok());
  const auto client = Connect();
  ASSERT_EQ(client->Declare(SomeParameters()), Ok());
  ASSERT_TRUE(client->Open(1, kShard).ok());
  ASSERT_TRUE(Push(*client, 1, 0).ok());
  // Nobody asks. Workers are sent away, to find a successor at the address.
  const Time deadline = clock_.Now() + std::chrono::seconds(30);
  while (server_->State()[0].connections > 0 && clock_.Now() < deadline) usleep(10'000);
  ASSERT_EQ(server_->State()[0].connections, 0) << "the server did not close its connections";
  const auto push = client->StartPush({.lease = 1, .shard = kShard, .batch = 1});
  while (server_->State()[0].requests_waiting == 0) client->Move();
  EXPECT_FALSE(client->IsDone(push)) << "another server may serve by now";
  EXPECT_EQ(server_->State()[0].pushes, 1U);

  EXPECT_EQ(StateOfFirstLane().ps_epoch, 1U);

  const auto pushed = client->WaitPush(push);
  ASSERT_TRUE(pushed.ok()) << pushed.status();
  EXPECT_EQ(pushed->outcome, PushResult::Outcome::kApplied);
}

TEST_F(ManagedTest, ServesNobodyWhileItIsRestored) {
  ASSERT_EQ(Restore({.incarnation = kLife, .ps_epoch = 2}), Ok());
  const auto missing = Restore({.incarnation = kLife, .ps_epoch = 3, .paths = {folder_ / "none"}});
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_THAT(Serve({.ps_epoch = 2}).message(), HasSubstr("is over"));
}

// A worker that was frozen long enough to have been forgotten.
TEST_F(ManagedTest, FencesWhoeverComesAfterTheMarksOfItsShardWereDropped) {
  ASSERT_EQ(Serve({.ps_epoch = 1, .may_push = true}), Ok());
  const auto client = Connect();
  ASSERT_EQ(client->Declare(SomeParameters()), Ok());
  ASSERT_TRUE(client->Open(1, kShard).ok());
  ASSERT_EQ(Push(*client, 1, 0)->outcome, PushResult::Outcome::kApplied);
  checkpoint::ShardSet covered{.ledger = 5};
  covered.datasets[1] = {.generation = 1, .epochs = {}, .shards = {}};
  covered.datasets[1].epochs.Add(0);

  ASSERT_EQ(Serve({.ps_epoch = 1, .may_push = true, .floor = 2, .covered = covered.ToJson()}),
            Ok());

  EXPECT_EQ(Push(*client, 1, 1)->outcome, PushResult::Outcome::kFenced);
  EXPECT_EQ(client->Open(1, kShard).status().code(), Code::kAborted);
}

}  // namespace
}  // namespace edl::ps_client
