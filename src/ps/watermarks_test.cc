#include "ps/watermarks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::ps {
namespace {

using Outcome = Watermarks::Outcome;
using ::testing::ElementsAre;
using ::testing::Optional;

constexpr wire::ShardKey kShard{
    .ledger = job::LedgerId(1), .dataset = job::DatasetId(2), .generation = 1, .ordinal = 3};
constexpr wire::ShardKey kOther{
    .ledger = job::LedgerId(1), .dataset = job::DatasetId(2), .generation = 1, .ordinal = 4};
constexpr job::LeaseId kLease(10);

checkpoint::ShardSet Covering(const wire::ShardKey& shard) {
  checkpoint::ShardSet set{.ledger = shard.ledger};
  checkpoint::ShardSet::Dataset& dataset = set.datasets[shard.dataset];
  dataset.generation = shard.generation;
  dataset.shards[shard.epoch].Add(shard.ordinal);
  return set;
}

uint64_t Opened(Watermarks& marks, job::LeaseId lease, const wire::ShardKey& shard = kShard) {
  return *marks.Open(lease, shard);
}

TEST(Watermarks, CountEachBatchOnceInOrder) {
  Watermarks marks(0, 4);
  EXPECT_EQ(Opened(marks, kLease), 0U);
  EXPECT_EQ(marks.Count(kLease, kShard, 0).outcome, Outcome::kApplied);
  EXPECT_EQ(marks.Count(kLease, kShard, 0).outcome, Outcome::kAlready);
  const auto ahead = marks.Count(kLease, kShard, 2);
  EXPECT_EQ(ahead.outcome, Outcome::kAhead);
  EXPECT_EQ(ahead.mark, 1U);
  EXPECT_EQ(marks.Count(kLease, kShard, 1).outcome, Outcome::kApplied);
  EXPECT_EQ(marks.Count(kLease, kShard, 2).mark, 3U);
}

TEST(Watermarks, OfOneShardAreNotThoseOfAnother) {
  Watermarks marks(0, 4);
  Opened(marks, kLease);
  Opened(marks, kLease.Next(), kOther);
  EXPECT_EQ(marks.Count(kLease, kShard, 0).outcome, Outcome::kApplied);
  EXPECT_EQ(marks.Count(kLease.Next(), kOther, 0).outcome, Outcome::kApplied);
}

TEST(Watermarks, RejectAShardThatIsNotOpen) {
  Watermarks marks(0, 4);
  EXPECT_EQ(marks.Count(kLease, kShard, 0).outcome, Outcome::kNotOpen);
  Opened(marks, kLease);
  EXPECT_EQ(marks.Count(kLease.Next(), kShard, 0).outcome, Outcome::kNotOpen);
}

TEST(Watermarks, FenceTheHolderOfAnOlderLease) {
  Watermarks marks(0, 4);
  Opened(marks, kLease);
  EXPECT_EQ(marks.Count(kLease, kShard, 0).outcome, Outcome::kApplied);
  EXPECT_EQ(Opened(marks, kLease.Next()), 1U);

  EXPECT_EQ(marks.Count(kLease, kShard, 1).outcome, Outcome::kFenced);
  EXPECT_THAT(marks.Open(kLease, kShard), StatusIs(Code::kAborted));
  EXPECT_EQ(marks.Count(kLease.Next(), kShard, 1).outcome, Outcome::kApplied);
}

TEST(Watermarks, FenceLeasesBelowTheFloorAlsoForDroppedShards) {
  Watermarks marks(0, 4);
  Opened(marks, kLease);
  marks.Count(kLease, kShard, 0);
  marks.RaiseFloor(kLease.Next());
  marks.RaiseFloor(kLease);  // it never falls
  marks.Drop(Covering(kShard));

  EXPECT_EQ(marks.Count(kLease, kShard, 1).outcome, Outcome::kFenced);
  EXPECT_THAT(marks.Open(kLease, kShard), StatusIs(Code::kAborted));
  EXPECT_EQ(marks.shards(), 0U);
}

TEST(Watermarks, AreNotDroppedWhileALeaseOfTheShardMayBeOpen) {
  Watermarks marks(0, 4);
  Opened(marks, kLease);
  Opened(marks, kLease.Next(), kOther);
  marks.RaiseFloor(kLease);
  marks.Drop(Covering(kShard));
  EXPECT_EQ(marks.shards(), 2U) << "its lease is the lowest that is open";

  marks.RaiseFloor(kLease.Next().Next());
  marks.Drop(Covering(kShard));
  EXPECT_EQ(marks.shards(), 1U) << "the other is not covered";
  checkpoint::ShardSet of_another_ledger = Covering(kOther);
  of_another_ledger.ledger = of_another_ledger.ledger.Next();
  marks.Drop(of_another_ledger);
  EXPECT_EQ(marks.shards(), 1U);
}

TEST(Watermarks, DecideByBucketWhereBucketsDoNotAgree) {
  Watermarks marks(8, 11);
  marks.Restore({.first = 8, .end = 9, .shard = kShard, .lease = kLease, .mark = 2});
  marks.Restore({.first = 9, .end = 10, .shard = kShard, .lease = kLease, .mark = 1});
  marks.Settle();
  // Bucket 10 has seen nothing of the shard.
  EXPECT_EQ(Opened(marks, kLease.Next()), 0U);
  const auto count = [&](uint64_t batch) { return marks.Count(kLease.Next(), kShard, batch); };
  EXPECT_EQ(count(1).outcome, Outcome::kAhead);
  EXPECT_THAT(count(0).lacked, Optional(ElementsAre(false, false, true)));
  EXPECT_EQ(count(0).outcome, Outcome::kAlready);
  EXPECT_THAT(count(1).lacked, Optional(ElementsAre(false, true, true)));
  EXPECT_EQ(count(2).lacked, std::nullopt);
}

TEST(Watermarks, AreListedInRangesOfBucketsThatAgree) {
  Watermarks marks(8, 12);
  marks.Restore({.first = 0, .end = 10, .shard = kShard, .lease = kLease, .mark = 2});
  marks.Settle();
  EXPECT_THAT(
      marks.Entries(),
      ElementsAre(
          Watermarks::Entry{.first = 8, .end = 10, .shard = kShard, .lease = kLease, .mark = 2},
          Watermarks::Entry{.first = 10, .end = 12, .shard = kShard, .lease = kLease, .mark = 0}));
}

TEST(Watermarks, AreRestoredOnAnyNumberOfLanes) {
  Watermarks two(0, 2);
  Opened(two, kLease);
  two.Count(kLease, kShard, 0);
  Watermarks one(1, 2);
  for (const Watermarks::Entry& entry : two.Entries()) one.Restore(entry);
  one.Settle();

  EXPECT_THAT(two.Entries(),
              ElementsAre(Watermarks::Entry{
                  .first = 0, .end = 2, .shard = kShard, .lease = kLease, .mark = 1}));
  EXPECT_EQ(one.Count(kLease, kShard, 0).outcome, Outcome::kAlready);
  EXPECT_THAT(one.Open(job::LeaseId(kLease.value() - 1), kShard), StatusIs(Code::kAborted));
  EXPECT_EQ(one.Count(kLease, kShard, 1).lacked, std::nullopt);
}

TEST(Watermarks, DropClientsThatPushedLongAgo) {
  Watermarks marks(0, 4);
  const auto key = [](uint64_t client) {
    return wire::ShardKey{.ledger = job::LedgerId(1000 + client)};
  };
  for (uint64_t client = 0; client < 2 * Watermarks::kMostOwnShards; ++client) {
    Opened(marks, job::kOwnLease, key(client));
    if (client == 100) Opened(marks, kLease);
    // One of them goes on all the time.
    ASSERT_NE(marks.Peek(job::kOwnLease, key(0), 0).outcome, Outcome::kNotOpen);
    Opened(marks, job::kOwnLease, key(0));
  }
  EXPECT_LE(marks.shards(), Watermarks::kMostOwnShards + 1);
  EXPECT_EQ(marks.Peek(kLease, kShard, 0).outcome, Outcome::kApplied) << "a master's shard stays";
}

}  // namespace
}  // namespace edl::ps
