// A server that its master has replaced, but that still answers.

#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "checkpoint/shard_set.h"
#include "ps/parameter_server.h"
#include "ps_client/ask.h"
#include "ps_client/parameter_client.h"
#include "ps_client/testing/relay.h"

namespace edl::ps_client {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr wire::ShardKey kShard{
    .ledger = job::LedgerId(5), .dataset = job::DatasetId(1), .generation = 1};

class EpochsTest : public testing::Test {
 protected:
  // A server of the epoch, as a master has it serve.
  std::unique_ptr<ps::ParameterServer> Serve(job::PsIncarnation incarnation, job::PsEpoch epoch) {
    auto server = std::move(*ps::ParameterServer::Start(
        {.host = "127.0.0.1", .lanes = 2, .incarnation = incarnation, .managed = true}, clock_));
    const LinkOptions to{.host = "127.0.0.1", .port = server->port(), .caller = "a test"};
    std::vector<Question> questions;
    for (const LinkOptions& lane :
         LanesOf(to, {.incarnation = incarnation, .lanes = 2, .servers = 1, .index = 0})) {
      questions.push_back(
          {.to = lane,
           .meta = wire::Encode(
               wire::Serve{.incarnation = incarnation,
                           .ps_epoch = epoch,
                           .may_push = true,
                           .covered = checkpoint::ShardSet{.ledger = job::LedgerId(5)}.ToJson()})});
    }
    const auto told = Ask(wire::MessageType::kServe, questions, {.timeout = seconds(30)}, clock_);
    EXPECT_OK(told);
    return server;
  }
  std::unique_ptr<ParameterClient> Connect(uint16_t port, Duration timeout = seconds(60)) {
    return std::move(*ParameterClient::Connect(
        {.servers = {{"127.0.0.1", port}}, .timeout = timeout, .follows_restarts = true}, clock_));
  }

  const SystemClock clock_{};
};

TEST_F(EpochsTest, LeavesAServerOfAnEpochThatIsOver) {
  const auto zombie = Serve(job::PsIncarnation(1), job::PsEpoch(1));
  const auto successor = Serve(job::PsIncarnation(2), job::PsEpoch(2));
  Relay relay(zombie->port());
  const auto client = Connect(relay.port());
  ASSERT_EQ(client->Open(job::LeaseId(1), kShard)->ps_epoch, job::PsEpoch(1));
  // The address is the successor's from now on; connections that exist stay where they are.
  relay.SetTarget(successor->port());
  ASSERT_EQ(client->Open(job::LeaseId(1), kShard)->ps_epoch, job::PsEpoch(1))
      << "nobody said that the epoch is over";

  const auto opened = client->Open(job::LeaseId(1), kShard, job::PsEpoch(2));

  ASSERT_OK(opened);
  EXPECT_EQ(opened->ps_epoch, job::PsEpoch(2));
  EXPECT_EQ(client->incarnations()[0], job::PsIncarnation(2));
}

TEST_F(EpochsTest, WaitsForTheSuccessorWithoutSpinning) {
  const auto zombie = Serve(job::PsIncarnation(1), job::PsEpoch(1));
  Relay relay(zombie->port());
  const auto client = Connect(relay.port());
  const auto since = clock_.Now();
  const ParameterClient::Ticket open = client->StartOpen(job::LeaseId(1), kShard, job::PsEpoch(2));
  while (clock_.Now() - since < seconds(2)) {
    client->Move();
    ASSERT_FALSE(client->IsDone(open));
    client->WaitToMove(-1);
  }
  EXPECT_LE(relay.made(), 20) << "two lanes, and pauses that grow from 0.1 s";
  const auto successor = Serve(job::PsIncarnation(2), job::PsEpoch(2));
  relay.SetTarget(successor->port());
  EXPECT_EQ(client->WaitOpen(open)->ps_epoch, job::PsEpoch(2));
}

TEST_F(EpochsTest, FailsWhenNoSuccessorComes) {
  const auto zombie = Serve(job::PsIncarnation(1), job::PsEpoch(1));
  const auto client = Connect(zombie->port(), std::chrono::milliseconds(500));
  const auto opened = client->Open(job::LeaseId(1), kShard, job::PsEpoch(2));
  EXPECT_THAT(opened, StatusIs(Code::kUnavailable));
  EXPECT_THAT(opened.status().message(), HasSubstr("serves epoch 1, and epoch 2 has begun"));
}

}  // namespace
}  // namespace edl::ps_client
