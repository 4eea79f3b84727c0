#include "master/shards/hang_detector.h"

#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Time kStart(std::chrono::hours(1));

class HangDetectorTest : public ::testing::Test {
 protected:
  const Lease& Grant(uint64_t lease, const Session& holder, Time now = kStart) {
    const Lease& added = leases_.Add(
        {.lease = LeaseId(lease), .dataset = DatasetId(1), .holder = holder.incarnation}, &holder,
        now);
    detector_.OnLeased(holder.incarnation, now);
    return added;
  }
  void CompleteAfter(Duration time, const Session& holder) {
    const Lease& lease = Grant(next_done_++, holder);
    detector_.OnDone(lease, &holder, kStart + time);
    leases_.Remove(lease.row.lease);
  }
  // All leases that hang at that time.
  std::vector<HangDetector::Hung> HungAt(Time now) {
    std::vector<HangDetector::Hung> all;
    while (const auto hung = detector_.CheckNext(now)) {
      all.insert(all.end(), hung->begin(), hung->end());
    }
    return all;
  }

  Ledger ledger_ = *Ledger::Open(":memory:");
  Sessions sessions_{ledger_};
  Session& ours_ = sessions_.Open(Worker(0), "host:1", kStart);
  Session& published_ = sessions_.OpenCompat(Worker(1), kStart);
  LeaseTable leases_;
  WaiterQueue waiters_;
  HangDetector detector_{leases_, waiters_, sessions_};
  uint64_t next_done_ = 1000;
};

TEST_F(HangDetectorTest, AllowsAnHourForTheFirstShardOfOurClients) {
  Grant(1, ours_);

  EXPECT_THAT(HungAt(kStart + HangDetector::kHangAtFirst), IsEmpty());
  const auto hung = HungAt(kStart + HangDetector::kHangAtFirst + seconds(1));

  ASSERT_THAT(hung, SizeIs(1));
  EXPECT_EQ(hung[0].lease, LeaseId(1));
  EXPECT_EQ(hung[0].busy, HangDetector::kHangAtFirst + seconds(1));
  EXPECT_EQ(hung[0].limit, HangDetector::kHangAtFirst);
}

TEST_F(HangDetectorTest, AllowsThreeHundredSecondsForTheFirstShardOfPublishedClients) {
  Grant(1, published_);

  EXPECT_THAT(HungAt(kStart + HangDetector::kHangAtLeast), IsEmpty());
  EXPECT_THAT(HungAt(kStart + HangDetector::kHangAtLeast + seconds(1)), SizeIs(1));
}

TEST_F(HangDetectorTest, AllowsFiveTimesTheUsualTime) {
  CompleteAfter(seconds(100), published_);
  Grant(1, published_);

  EXPECT_THAT(HungAt(kStart + seconds(500)), IsEmpty());
  EXPECT_THAT(HungAt(kStart + seconds(501)), SizeIs(1));
}

TEST_F(HangDetectorTest, ChecksAgainWhenTheLimitIsReached) {
  Grant(1, published_);
  ASSERT_THAT(HungAt(kStart + seconds(290)), IsEmpty());

  EXPECT_EQ(detector_.CheckNext(kStart + seconds(300)), std::nullopt) << "not due";
  EXPECT_THAT(HungAt(kStart + seconds(301)), SizeIs(1));
}

TEST_F(HangDetectorTest, StandsStillWhileTheHolderWaits) {
  Grant(1, published_);
  waiters_.Add({.call = 1, .session = published_.incarnation, .dataset = "a"});

  EXPECT_THAT(HungAt(kStart + seconds(1000)), IsEmpty());

  waiters_.Remove(1);
  EXPECT_THAT(HungAt(kStart + seconds(1061)), SizeIs(1));
}

TEST_F(HangDetectorTest, CountsFromTheLastReportOfOurClients) {
  CompleteAfter(seconds(1), ours_);
  Grant(1, ours_);
  ours_.reported_at = kStart + seconds(200);

  EXPECT_THAT(HungAt(kStart + seconds(500)), IsEmpty());
  EXPECT_THAT(HungAt(kStart + seconds(501)), SizeIs(1));
}

TEST_F(HangDetectorTest, RaisesTheLimitWhenAReclaimedShardIsReportedAfterAll) {
  const Lease& slow = Grant(1, published_);
  ASSERT_THAT(HungAt(kStart + seconds(301)), SizeIs(1));
  detector_.OnReclaimed(slow, "too slow");
  leases_.Remove(LeaseId(1));

  detector_.OnLateReport(LeaseId(1), kStart + seconds(400));
  Grant(2, published_);

  EXPECT_THAT(HungAt(kStart + seconds(800)), IsEmpty());
  EXPECT_THAT(HungAt(kStart + seconds(801)), SizeIs(1));
}

TEST_F(HangDetectorTest, ReportsEachHungReplicaOnce) {
  detector_.OnReclaimed(Grant(1, published_), "too slow");

  const auto replicas = detector_.TakeHungReplicas();
  ASSERT_THAT(replicas, SizeIs(1));
  EXPECT_EQ(replicas[0].first, Worker(1));
  EXPECT_EQ(replicas[0].second, "too slow");
  EXPECT_THAT(detector_.TakeHungReplicas(), IsEmpty());
}

TEST_F(HangDetectorTest, DoesNotCheckAHolderWithoutLeasesAgain) {
  Grant(1, ours_);
  leases_.Remove(LeaseId(1));

  const auto checked = detector_.CheckNext(kStart + seconds(61));
  ASSERT_TRUE(checked.has_value());
  EXPECT_THAT(*checked, IsEmpty());
  EXPECT_FALSE(detector_.CheckNext(kStart + std::chrono::hours(9)).has_value());
}

}  // namespace
}  // namespace edl::master
