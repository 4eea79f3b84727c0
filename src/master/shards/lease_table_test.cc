#include "master/shards/lease_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr DatasetId kOne(1);
constexpr DatasetId kOther(2);
constexpr Time kStart(std::chrono::hours(1));

LeaseRow Row(uint64_t lease, DatasetId dataset, Incarnation holder) {
  return {.lease = LeaseId(lease),
          .dataset = dataset,
          .holder = holder,
          .task = static_cast<int32_t>(100 + lease)};
}

class LeaseTableTest : public ::testing::Test {
 protected:
  const Session worker_{.incarnation = Incarnation(7), .replica = Worker(0)};
  const Session published_{.incarnation = Incarnation(8), .replica = Worker(1), .compat_api = true};
  LeaseTable table_;
};

TEST_F(LeaseTableTest, FindsALeaseByEachOfItsIndexes) {
  table_.Add(Row(1, kOne, worker_.incarnation), &worker_, kStart);
  table_.Add(Row(2, kOther, published_.incarnation), &published_, kStart);

  ASSERT_NE(table_.Find(LeaseId(1)), nullptr);
  EXPECT_EQ(table_.Find(LeaseId(1))->replica, Worker(0));
  EXPECT_THAT(table_.HeldBy(worker_.incarnation), ElementsAre(LeaseId(1)));
  EXPECT_THAT(table_.OfDataset(kOther), ElementsAre(LeaseId(2)));
  EXPECT_EQ(table_.CountOf(Worker(0)), 1);
  EXPECT_EQ(table_.CountOf(Worker(5)), 0);
}

TEST_F(LeaseTableTest, FindsTasksOfTheCompatibilityApiOnly) {
  table_.Add(Row(1, kOne, worker_.incarnation), &worker_, kStart);
  table_.Add(Row(2, kOne, published_.incarnation), &published_, kStart);

  EXPECT_EQ(table_.FindTask(kOne, 101), nullptr);
  ASSERT_NE(table_.FindTask(kOne, 102), nullptr);
  EXPECT_EQ(table_.FindTask(kOne, 102)->row.lease, LeaseId(2));
  EXPECT_EQ(table_.FindTask(kOther, 102), nullptr);
}

TEST_F(LeaseTableTest, RemovesALeaseFromAllIndexes) {
  table_.Add(Row(2, kOne, published_.incarnation), &published_, kStart);

  EXPECT_EQ(table_.Remove(LeaseId(2)).row.lease, LeaseId(2));

  EXPECT_EQ(table_.Find(LeaseId(2)), nullptr);
  EXPECT_EQ(table_.FindTask(kOne, 102), nullptr);
  EXPECT_THAT(table_.HeldBy(published_.incarnation), IsEmpty());
  EXPECT_THAT(table_.OfDataset(kOne), IsEmpty());
  EXPECT_EQ(table_.CountOf(Worker(1)), 0);
}

TEST_F(LeaseTableTest, KeepsALeaseWhoseSessionHasEnded) {
  table_.Add(Row(1, kOne, Incarnation(3)), nullptr, kStart);

  EXPECT_THAT(table_.HeldBy(Incarnation(3)), ElementsAre(LeaseId(1)));
  EXPECT_EQ(table_.CountOf(ReplicaRef{}), 1);
}

TEST_F(LeaseTableTest, SkipsTheTimeAfterALeaseBegan) {
  table_.Add(Row(1, kOne, worker_.incarnation), &worker_, kStart);
  table_.Add(Row(2, kOne, worker_.incarnation), &worker_, kStart + seconds(30));

  table_.SkipTime(worker_.incarnation, kStart + seconds(10), kStart + seconds(40));

  EXPECT_EQ(table_.Find(LeaseId(1))->since, kStart + seconds(30));
  EXPECT_EQ(table_.Find(LeaseId(2))->since, kStart + seconds(40));
}

TEST_F(LeaseTableTest, SuspectsOlderLeasesOfTheSameHolderAndDataset) {
  table_.Add(Row(1, kOne, published_.incarnation), &published_, kStart);
  table_.Add(Row(2, kOther, published_.incarnation), &published_, kStart);
  table_.Add(Row(3, kOne, worker_.incarnation), &worker_, kStart);
  table_.Add(Row(4, kOne, published_.incarnation), &published_, kStart);
  table_.Add(Row(5, kOne, published_.incarnation), &published_, kStart);

  table_.SuspectOlder(*table_.Find(LeaseId(4)));

  EXPECT_THAT(table_.SuspectsOf(kOne), ElementsAre(LeaseId(1)));
  EXPECT_THAT(table_.SuspectsOf(kOther), IsEmpty());
  EXPECT_TRUE(table_.Find(LeaseId(1))->suspect);
  table_.Remove(LeaseId(1));
  EXPECT_THAT(table_.SuspectsOf(kOne), IsEmpty());
}

TEST_F(LeaseTableTest, ClearsTheSuspectsOfAHolder) {
  table_.Add(Row(1, kOne, published_.incarnation), &published_, kStart);
  table_.Add(Row(2, kOne, published_.incarnation), &published_, kStart);
  table_.SuspectOlder(*table_.Find(LeaseId(2)));

  table_.ClearSuspects(*table_.Find(LeaseId(1)));

  EXPECT_THAT(table_.SuspectsOf(kOne), IsEmpty());
  EXPECT_FALSE(table_.Find(LeaseId(1))->suspect);
}

}  // namespace
}  // namespace edl::master
