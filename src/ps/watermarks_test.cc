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

uint64_t Opened(Watermarks& watermarks, job::LeaseId lease, const wire::ShardKey& shard = kShard) {
  return *watermarks.Open(lease, shard);
}

TEST(Watermarks, CountEachBatchOnceInOrder) {
  Watermarks watermarks(0, 4);
  EXPECT_EQ(Opened(watermarks, kLease), 0U);
  EXPECT_EQ(watermarks.Count(kLease, kShard, 0).outcome, Outcome::kApplied);
  EXPECT_EQ(watermarks.Count(kLease, kShard, 0).outcome, Outcome::kAlready);
  const auto ahead = watermarks.Count(kLease, kShard, 2);
  EXPECT_EQ(ahead.outcome, Outcome::kAhead);
  EXPECT_EQ(ahead.watermark, 1U);
  EXPECT_EQ(watermarks.Count(kLease, kShard, 1).outcome, Outcome::kApplied);
  EXPECT_EQ(watermarks.Count(kLease, kShard, 2).watermark, 3U);
}

TEST(Watermarks, OfOneShardAreNotThoseOfAnother) {
  Watermarks watermarks(0, 4);
  Opened(watermarks, kLease);
  Opened(watermarks, kLease.Next(), kOther);
  EXPECT_EQ(watermarks.Count(kLease, kShard, 0).outcome, Outcome::kApplied);
  EXPECT_EQ(watermarks.Count(kLease.Next(), kOther, 0).outcome, Outcome::kApplied);
}

TEST(Watermarks, RejectAShardThatIsNotOpen) {
  Watermarks watermarks(0, 4);
  EXPECT_EQ(watermarks.Count(kLease, kShard, 0).outcome, Outcome::kNotOpen);
  Opened(watermarks, kLease);
  EXPECT_EQ(watermarks.Count(kLease.Next(), kShard, 0).outcome, Outcome::kNotOpen);
}

TEST(Watermarks, FenceTheHolderOfAnOlderLease) {
  Watermarks watermarks(0, 4);
  Opened(watermarks, kLease);
  EXPECT_EQ(watermarks.Count(kLease, kShard, 0).outcome, Outcome::kApplied);
  EXPECT_EQ(Opened(watermarks, kLease.Next()), 1U);

  EXPECT_EQ(watermarks.Count(kLease, kShard, 1).outcome, Outcome::kFenced);
  EXPECT_THAT(watermarks.Open(kLease, kShard), StatusIs(Code::kAborted));
  EXPECT_EQ(watermarks.Count(kLease.Next(), kShard, 1).outcome, Outcome::kApplied);
}

TEST(Watermarks, FenceLeasesBelowTheFloorAlsoForDroppedShards) {
  Watermarks watermarks(0, 4);
  Opened(watermarks, kLease);
  watermarks.Count(kLease, kShard, 0);
  watermarks.RaiseFloor(kLease.Next());
  watermarks.RaiseFloor(kLease);  // it never falls
  watermarks.Drop(Covering(kShard));

  EXPECT_EQ(watermarks.Count(kLease, kShard, 1).outcome, Outcome::kFenced);
  EXPECT_THAT(watermarks.Open(kLease, kShard), StatusIs(Code::kAborted));
  EXPECT_EQ(watermarks.shards(), 0U);
}

TEST(Watermarks, AreNotDroppedWhileALeaseOfTheShardMayBeOpen) {
  Watermarks watermarks(0, 4);
  Opened(watermarks, kLease);
  Opened(watermarks, kLease.Next(), kOther);
  watermarks.RaiseFloor(kLease);
  watermarks.Drop(Covering(kShard));
  EXPECT_EQ(watermarks.shards(), 2U) << "its lease is the lowest that is open";

  watermarks.RaiseFloor(kLease.Next().Next());
  watermarks.Drop(Covering(kShard));
  EXPECT_EQ(watermarks.shards(), 1U) << "the other is not covered";
  checkpoint::ShardSet of_another_ledger = Covering(kOther);
  of_another_ledger.ledger = of_another_ledger.ledger.Next();
  watermarks.Drop(of_another_ledger);
  EXPECT_EQ(watermarks.shards(), 1U);
}

TEST(Watermarks, DecideByBucketWhereBucketsDoNotAgree) {
  Watermarks watermarks(8, 11);
  watermarks.Restore({.first = 8, .end = 9, .shard = kShard, .lease = kLease, .watermark = 2});
  watermarks.Restore({.first = 9, .end = 10, .shard = kShard, .lease = kLease, .watermark = 1});
  watermarks.Settle();
  // Bucket 10 has seen nothing of the shard.
  EXPECT_EQ(Opened(watermarks, kLease.Next()), 0U);
  const auto count = [&](uint64_t batch) { return watermarks.Count(kLease.Next(), kShard, batch); };
  EXPECT_EQ(count(1).outcome, Outcome::kAhead);
  EXPECT_THAT(count(0).lacked, Optional(ElementsAre(false, false, true)));
  EXPECT_EQ(count(0).outcome, Outcome::kAlready);
  EXPECT_THAT(count(1).lacked, Optional(ElementsAre(false, true, true)));
  EXPECT_EQ(count(2).lacked, std::nullopt);
}

TEST(Watermarks, AreListedInRangesOfBucketsThatAgree) {
  Watermarks watermarks(8, 12);
  watermarks.Restore({.first = 0, .end = 10, .shard = kShard, .lease = kLease, .watermark = 2});
  watermarks.Settle();
  EXPECT_THAT(watermarks.Entries(),
              ElementsAre(
                  Watermarks::Entry{
                      .first = 8, .end = 10, .shard = kShard, .lease = kLease, .watermark = 2},
                  Watermarks::Entry{
                      .first = 10, .end = 12, .shard = kShard, .lease = kLease, .watermark = 0}));
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
                  .first = 0, .end = 2, .shard = kShard, .lease = kLease, .watermark = 1}));
  EXPECT_EQ(one.Count(kLease, kShard, 0).outcome, Outcome::kAlready);
  EXPECT_THAT(one.Open(job::LeaseId(kLease.value() - 1), kShard), StatusIs(Code::kAborted));
  EXPECT_EQ(one.Count(kLease, kShard, 1).lacked, std::nullopt);
}

TEST(Watermarks, DropClientsThatPushedLongAgo) {
  Watermarks watermarks(0, 4);
  const auto key = [](uint64_t client) {
    return wire::ShardKey{.ledger = job::LedgerId(1000 + client)};
  };
  for (uint64_t client = 0; client < 2 * Watermarks::kMostOwnShards; ++client) {
    Opened(watermarks, job::kOwnLease, key(client));
    if (client == 100) Opened(watermarks, kLease);
    // One of them goes on all the time.
    ASSERT_NE(watermarks.Peek(job::kOwnLease, key(0), 0).outcome, Outcome::kNotOpen);
    Opened(watermarks, job::kOwnLease, key(0));
  }
  EXPECT_LE(watermarks.shards(), Watermarks::kMostOwnShards + 1);
  EXPECT_EQ(watermarks.Peek(kLease, kShard, 0).outcome, Outcome::kApplied)
      << "a master's shard stays";
}

}  // namespace
}  // namespace edl::ps
