#include "ps_client/own_shard.h"

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::ps_client {
namespace {

using wire::PushOutcome;

TEST(OwnShard, CountsItsBatchesFromZero) {
  OwnShard shard;
  EXPECT_EQ(shard.Next(), 0U);
  EXPECT_EQ(shard.Next(), 1U);
}

TEST(OwnShard, IsNoOtherClientsShard) { EXPECT_NE(OwnShard().key(), OwnShard().key()); }

TEST(OwnShard, TakesABatchThatWasAppliedBeforeAsApplied) {
  OwnShard shard;
  shard.Next();
  EXPECT_THAT(shard.Settle(0, PushOutcome::kAlready), IsOkAndHolds(PushOutcome::kApplied));
}

TEST(OwnShard, PushesAStaleBatchAndThoseBehindItAgain) {
  OwnShard shard;
  for (int i = 0; i < 3; ++i) shard.Next();
  ASSERT_THAT(shard.Settle(0, PushOutcome::kApplied), IsOkAndHolds(PushOutcome::kApplied));

  EXPECT_THAT(shard.Settle(1, PushOutcome::kStale), IsOkAndHolds(PushOutcome::kStale));
  EXPECT_THAT(shard.Settle(2, PushOutcome::kAhead), IsOkAndHolds(PushOutcome::kStale));

  EXPECT_EQ(shard.Next(), 1U);
  EXPECT_THAT(shard.Settle(1, PushOutcome::kApplied), IsOkAndHolds(PushOutcome::kApplied));
  EXPECT_EQ(shard.Next(), 2U);
  EXPECT_FALSE(shard.is_broken());
}

TEST(OwnShard, BreaksWhenAServerLacksBatches) {
  for (const PushOutcome outcome :
       {PushOutcome::kAhead, PushOutcome::kNotOpen, PushOutcome::kFenced}) {
    OwnShard shard;
    const uint64_t batch = shard.Next();
    EXPECT_THAT(shard.Settle(batch, outcome), StatusIs(Code::kAborted));
    EXPECT_TRUE(shard.is_broken());
  }
}

TEST(OwnShard, BreaksWhenABatchIsMissingAfterTheStaleOneWasPushedAgain) {
  OwnShard shard;
  shard.Next();
  ASSERT_THAT(shard.Settle(0, PushOutcome::kStale), IsOkAndHolds(PushOutcome::kStale));
  ASSERT_THAT(shard.Settle(shard.Next(), PushOutcome::kApplied),
              IsOkAndHolds(PushOutcome::kApplied));
  EXPECT_THAT(shard.Settle(shard.Next(), PushOutcome::kAhead), StatusIs(Code::kAborted));
}

}  // namespace
}  // namespace edl::ps_client
