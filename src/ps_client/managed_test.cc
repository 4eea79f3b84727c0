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

#include "base/testing/await.h"
#include "base/testing/status_matchers.h"
#include "checkpoint/new_checkpoint.h"
#include "checkpoint/shard_set.h"
#include "ps/parameter_server.h"
#include "ps_client/ask.h"
#include "ps_client/parameter_client.h"

namespace edl::ps_client {
namespace {

using ::testing::HasSubstr;
using wire::MessageType;

constexpr job::PsIncarnation kLife(7);
constexpr wire::ShardKey kShard{
    .ledger = job::LedgerId(5), .dataset = job::DatasetId(1), .generation = 1};

class ManagedTest : public testing::Test {
 protected:
  ManagedTest() { Start(); }
  ~ManagedTest() override { std::filesystem::remove_all(folder_); }

  void Start(job::PsIncarnation life = kLife, Duration fence_after = std::chrono::minutes(10)) {
    server_.reset();
    server_ = std::move(*ps::ParameterServer::Start({.host = "127.0.0.1",
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
    serve.incarnation = serve.incarnation == job::PsIncarnation() ? kLife : serve.incarnation;
    if (serve.covered.empty())
      serve.covered = checkpoint::ShardSet{.ledger = job::LedgerId(5)}.ToJson();
    return AskAll(MessageType::kServe, wire::Encode(serve)).status();
  }
  Status Restore(const wire::Restore& restore) {
    return AskAll(MessageType::kRestore, wire::Encode(restore)).status();
  }
  wire::StateAnswer StateOfFirstLane() {
    const auto answers = AskAll(MessageType::kState, "");
    wire::StateAnswer state;
    EXPECT_OK(answers);
    if (answers.ok()) {
      EXPECT_OK(wire::Decode(std::as_bytes(std::span(answers->front().meta)), state));
    }
    return state;
  }

  std::unique_ptr<ParameterClient> Connect() {
    return std::move(
        *ParameterClient::Connect({.servers = {{"127.0.0.1", server_->port()}}}, clock_));
  }
  static Parameters SomeParameters() {
    return {.text = R"({"tables": [{"name": "t", "dim": 1}]})", .table_dims = {1}};
  }
  // Adds 1 to row 3 of the client's table, at that batch.
  Status AwaitWaitingRequest(ParameterClient& client) {
    return AwaitPolling("a request that waits at lane 0", [&] {
      client.Move();
      return server_->State()[0].requests_waiting > 0;
    });
  }

  static Result<PushResult> Push(ParameterClient& client, job::LeaseId lease, uint64_t batch) {
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
  std::unique_ptr<ps::ParameterServer> server_;
  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / fmt::format("managed-{}", getpid());
};

TEST_F(ManagedTest, KeepsWorkersWaitingUntilTheMasterSendsServe) {
  const auto client = Connect();
  const auto pull = client->StartPull({});
  ASSERT_OK(AwaitWaitingRequest(*client));
  EXPECT_EQ(StateOfFirstLane().ps_epoch, job::PsEpoch(0)) << "a master is answered";
  EXPECT_FALSE(client->IsDone(pull));

  ASSERT_OK(Serve({.ps_epoch = job::PsEpoch(1)}));

  EXPECT_OK(client->WaitPull(pull));
  EXPECT_EQ(server_->State()[0].requests_waiting, 0U);
}

TEST_F(ManagedTest, LetsNobodyOpenBeforeTheFirstCheckpoint) {
  ASSERT_OK(Serve({.ps_epoch = job::PsEpoch(1)}));
  std::thread worker([&] {
    const auto client = Connect();
    const auto opened = client->Open(job::LeaseId(1), kShard);
    ASSERT_OK(opened);
    EXPECT_EQ(opened->ps_epoch, job::PsEpoch(1));
  });
  EXPECT_OK(
      AwaitPolling("an Open that waits", [&] { return StateOfFirstLane().opens_waiting > 0; }));

  EXPECT_OK(Serve({.ps_epoch = job::PsEpoch(1), .may_push = true}));

  worker.join();
  EXPECT_EQ(StateOfFirstLane().opens_waiting, 0U);
}

TEST_F(ManagedTest, RefusesRequestsForAnotherIncarnation) {
  EXPECT_THAT(Serve({.incarnation = kLife.Next(), .ps_epoch = job::PsEpoch(1)}).message(),
              HasSubstr("incarnation"));
  EXPECT_THAT(Restore({.incarnation = kLife.Next(), .ps_epoch = job::PsEpoch(1)}).message(),
              HasSubstr("incarnation"));
}

TEST_F(ManagedTest, RefusesALateRequestOfADeadMaster) {
  ASSERT_OK(Restore({.incarnation = kLife, .ps_epoch = job::PsEpoch(2)}));
  EXPECT_THAT(Restore({.incarnation = kLife, .ps_epoch = job::PsEpoch(1)}).message(),
              HasSubstr("has begun"));
  EXPECT_THAT(Serve({.ps_epoch = job::PsEpoch(1)}).message(), HasSubstr("is over"));
  EXPECT_OK(Serve({.ps_epoch = job::PsEpoch(2)}));
}

TEST_F(ManagedTest, IsNotSavedBeforeItServes) {
  const auto saved = AskAll(MessageType::kSave, wire::Encode(wire::Save{.path = folder_}));
  EXPECT_THAT(saved, StatusIs(Code::kFailedPrecondition));
}

TEST_F(ManagedTest, IsRestoredAgainUntilItServesAndNotAfter) {
  ASSERT_OK(Serve({.ps_epoch = job::PsEpoch(1), .may_push = true}));
  auto client = Connect();
  ASSERT_OK(client->Declare(SomeParameters()));
  ASSERT_OK(client->Open(job::LeaseId(1), kShard));
  ASSERT_OK(Push(*client, job::LeaseId(1), 0));
  ASSERT_OK(client->Save(folder_));
  EXPECT_THAT(Restore({.incarnation = kLife, .ps_epoch = job::PsEpoch(2)}),
              StatusIs(Code::kFailedPrecondition));

  client.reset();
  Start(kLife.Next());
  const wire::Restore restore{
      .incarnation = kLife.Next(),
      .ps_epoch = job::PsEpoch(2),
      .paths = {folder_ / checkpoint::PartName(job::LaneInJob(0), 2, kLife),
                folder_ / checkpoint::PartName(job::LaneInJob(1), 2, kLife)}};
  ASSERT_OK(Restore(restore));
  ASSERT_OK(Restore(restore)) << "a first attempt may have been given up half-way";
  ASSERT_OK(Serve({.incarnation = kLife.Next(), .ps_epoch = job::PsEpoch(2), .may_push = true}));

  client = Connect();
  ASSERT_OK(client->Declare(SomeParameters()));
  const auto opened = client->Open(job::LeaseId(2), kShard);
  ASSERT_OK(opened);
  EXPECT_EQ(opened->watermark, 1U);
  EXPECT_EQ(opened->ps_epoch, job::PsEpoch(2));
}

TEST_F(ManagedTest, TakesNoWatermarksFromAnotherJob) {
  ASSERT_OK(Serve({.ps_epoch = job::PsEpoch(1), .may_push = true}));
  auto client = Connect();
  ASSERT_OK(client->Declare(SomeParameters()));
  ASSERT_OK(client->Open(job::LeaseId(1), kShard));
  ASSERT_OK(Push(*client, job::LeaseId(1), 0));
  ASSERT_OK(client->Save(folder_));
  client.reset();
  Start();
  ASSERT_OK(Restore({.incarnation = kLife,
                     .ps_epoch = job::PsEpoch(1),
                     .with_watermarks = false,
                     .paths = {folder_ / checkpoint::PartName(job::LaneInJob(0), 2, kLife),
                               folder_ / checkpoint::PartName(job::LaneInJob(1), 2, kLife)}}));
  ASSERT_OK(Serve({.ps_epoch = job::PsEpoch(1), .may_push = true}));

  client = Connect();
  ASSERT_OK(client->Declare(SomeParameters()));
  EXPECT_EQ(client->Open(job::LeaseId(1), kShard)->watermark, 0U);
  EXPECT_EQ(server_->State()[0].rows + server_->State()[1].rows, 1U);
}

TEST_F(ManagedTest, TakesNoPushesWhileItLeavesAndWaitsToBeReleased) {
  EXPECT_TRUE(server_->IsReleased()) << "it has nothing yet";
  ASSERT_OK(Serve({.ps_epoch = job::PsEpoch(1), .may_push = true}));
  EXPECT_FALSE(server_->IsReleased());
  const auto client = Connect();
  ASSERT_OK(client->Declare(SomeParameters()));
  ASSERT_OK(client->Open(job::LeaseId(1), kShard));
  ASSERT_OK(Push(*client, job::LeaseId(1), 0));

  server_->Leave();
  const auto push = client->StartPush({.lease = job::LeaseId(1), .shard = kShard, .batch = 1});
  client->Move();
  EXPECT_TRUE(StateOfFirstLane().leaving);
  EXPECT_EQ(server_->State()[0].pushes, 1U);
  EXPECT_FALSE(client->IsDone(push));
  EXPECT_OK(Connect()->Save(folder_)) << "it is saved all the same";

  ASSERT_OK(Serve({.ps_epoch = job::PsEpoch(1), .may_push = true, .released = true}));
  EXPECT_TRUE(server_->IsReleased());
}

TEST_F(ManagedTest, TakesNoPushesWhileItsMasterIsAway) {
  Start(kLife, std::chrono::seconds(2));
  ASSERT_OK(Serve({.ps_epoch = job::PsEpoch(1), .may_push = true}));
  const auto client = Connect();
  ASSERT_OK(client->Declare(SomeParameters()));
  ASSERT_OK(client->Open(job::LeaseId(1), kShard));
  ASSERT_OK(Push(*client, job::LeaseId(1), 0));
  // No master calls. The server closes the connections of workers, so that they find its successor.
  ASSERT_OK(AwaitPolling("the server closing its connections",
                         [&] { return server_->State()[0].connections == 0; }));
  const auto push = client->StartPush({.lease = job::LeaseId(1), .shard = kShard, .batch = 1});
  ASSERT_OK(AwaitWaitingRequest(*client));
  EXPECT_FALSE(client->IsDone(push)) << "another server may serve by now";
  EXPECT_EQ(server_->State()[0].pushes, 1U);

  EXPECT_EQ(StateOfFirstLane().ps_epoch, job::PsEpoch(1));

  const auto pushed = client->WaitPush(push);
  ASSERT_OK(pushed);
  EXPECT_EQ(pushed->outcome, wire::PushOutcome::kApplied);
}

TEST_F(ManagedTest, ServesNobodyWhileItIsRestored) {
  ASSERT_OK(Restore({.incarnation = kLife, .ps_epoch = job::PsEpoch(2)}));
  const auto missing =
      Restore({.incarnation = kLife, .ps_epoch = job::PsEpoch(3), .paths = {folder_ / "none"}});
  EXPECT_THAT(missing, StatusIs(Code::kNotFound));
  EXPECT_THAT(Serve({.ps_epoch = job::PsEpoch(2)}).message(), HasSubstr("is over"));
}

// A worker that was frozen long enough to have been forgotten.
TEST_F(ManagedTest, RejectsPushesAfterTheWatermarksOfTheShardWereDropped) {
  ASSERT_OK(Serve({.ps_epoch = job::PsEpoch(1), .may_push = true}));
  const auto client = Connect();
  ASSERT_OK(client->Declare(SomeParameters()));
  ASSERT_OK(client->Open(job::LeaseId(1), kShard));
  ASSERT_EQ(Push(*client, job::LeaseId(1), 0)->outcome, wire::PushOutcome::kApplied);
  checkpoint::ShardSet covered{.ledger = job::LedgerId(5)};
  covered.datasets[job::DatasetId(1)] = {.generation = 1, .epochs = {}, .shards = {}};
  covered.datasets[job::DatasetId(1)].epochs.Add(0);

  ASSERT_OK(Serve({.ps_epoch = job::PsEpoch(1),
                   .may_push = true,
                   .floor = job::LeaseId(2),
                   .covered = covered.ToJson()}));

  EXPECT_EQ(Push(*client, job::LeaseId(1), 1)->outcome, wire::PushOutcome::kFenced);
  EXPECT_THAT(client->Open(job::LeaseId(1), kShard), StatusIs(Code::kAborted));
}

}  // namespace
}  // namespace edl::ps_client
