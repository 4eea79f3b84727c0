#include "master/api/compat_api.h"

#include <set>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

using HeldFetch = CoreFixture::HeldFetch;

bool IsEndOfData(const HeldFetch& fetch) {
  return fetch.answer.answered() && fetch.answer.result().ok() && !fetch.answer->has_value();
}

TEST(CompatApi, HoldsAFetchUntilAShardComesBack) {
  CoreFixture master;
  master.StartReplicas();
  master.Register(Shards(1));
  const LeasedShard shard = master.FetchShard(Worker(0));
  const HeldFetch held = master.Fetch(Worker(1));
  master.LetPass(std::chrono::minutes(4));
  ASSERT_FALSE(held.answer.answered());

  master.Exit(NameOf(Worker(0)), Killed());

  ASSERT_TRUE(held.answer.answered());
  ASSERT_TRUE(held.answer->has_value());
  EXPECT_EQ((*held.answer)->key, shard.key);
}

TEST(CompatApi, HoldsAFetchOfADatasetUntilItIsRegistered) {
  CoreFixture master;
  const HeldFetch held = master.Fetch(Worker(0));
  master.LetPass(std::chrono::hours(1));
  ASSERT_FALSE(held.answer.answered());

  master.Register(Shards(1));

  ASSERT_TRUE(held.answer.answered());
  EXPECT_TRUE(held.answer->has_value());
}

TEST(CompatApi, AnswersTheEndOfDataOnlyWhenItHasEnded) {
  CoreFixture master;
  master.Register(Shards(1));
  const LeasedShard shard = master.FetchShard(Worker(0));
  const HeldFetch held = master.Fetch(Worker(1));
  EXPECT_FALSE(held.answer.answered());

  master.ReportTask(shard);

  EXPECT_TRUE(IsEndOfData(held));
  EXPECT_TRUE(IsEndOfData(master.Fetch(Worker(0))));
}

// Programs choose the keys, so their number needs a limit.
TEST(CompatApi, KeepsNoMoreVersionsThanItsLimit) {
  CoreFixture master;
  CompatApi& api = master.core().compat_api();
  api.SetClusterVersion("first", 7);
  for (size_t i = 0; i + 1 < CompatApi::kMostVersions; ++i) {
    api.SetClusterVersion(fmt::format("{}", i), 1);
  }
  api.SetClusterVersion("first", 8);
  ASSERT_EQ(api.ClusterVersion("first"), 8) << "a key that is known takes no more memory";

  api.SetClusterVersion("one too many", 9);

  EXPECT_EQ(api.ClusterVersion("first"), 0);
  EXPECT_EQ(api.ClusterVersion("one too many"), 9);
}

TEST(CompatApi, NumbersTasksByLease) {
  CoreFixture master;
  master.StartReplicas();
  master.Register(Shards(2));
  const LeasedShard first = master.FetchShard(Worker(0));
  const LeasedShard second = master.FetchShard(Worker(1));
  master.Exit(NameOf(Worker(0)), Killed());

  const LeasedShard again = master.FetchShard(Worker(2));

  EXPECT_EQ(again.key, first.key);
  EXPECT_EQ((std::set<int32_t>{first.task, second.task, again.task}).size(), 3u);
}

TEST(CompatApi, TakesTheReportOfAnUnknownTaskWithoutACount) {
  CoreFixture master;
  master.Register(Shards(2));
  const LeasedShard shard = master.FetchShard(Worker(0));
  LeasedShard unknown = shard;
  unknown.task += 1000;

  master.ReportTask(unknown);
  master.ReportTask(shard);
  master.ReportTask(shard);
  master.core().compat_api().ReportTask("nothing", 1, "");

  EXPECT_EQ(master.Data().records_done, 10);
}

TEST(CompatApi, CountsAReportWithAnErrorAsAFailureOfTheShard) {
  CoreFixture master;
  master.Register(Shards(1));
  for (int times = 0; times < Dataset::kMaxFailures; ++times) {
    master.ReportTask(master.FetchShard(Worker(0)), "cannot parse record 3");
  }

  EXPECT_EQ(master.Data().shards_quarantined, 1);
  EXPECT_TRUE(IsEndOfData(master.Fetch(Worker(0))));
}

// Leases that may never have arrived.

TEST(CompatApiSuspects, AreLeasedAgainOnlyWhenNothingElseWaits) {
  CoreFixture master;
  master.Register(Shards(3));
  const LeasedShard lost = master.FetchShard(Worker(0));
  const LeasedShard later = master.FetchShard(Worker(0));
  master.ReportTask(later);

  EXPECT_EQ(master.FetchShard(Worker(1)).key, (ShardPosition{0, 2}));
  EXPECT_EQ(master.FetchShard(Worker(2)).key, lost.key);
  EXPECT_EQ(master.Data().leases, 2);
}

TEST(CompatApiSuspects, CountWhenTheyAreReportedBeforeTheNextLease) {
  CoreFixture master;
  master.Register(Shards(3));
  const LeasedShard first = master.FetchShard(Worker(0));
  const LeasedShard second = master.FetchShard(Worker(0));
  master.ReportTask(second);

  master.ReportTask(first);

  EXPECT_EQ(master.Data().records_done, 20);
  EXPECT_EQ(master.Data().shards_repeated, 0);
}

TEST(CompatApiSuspects, DoNotCountAfterTheyWereLeasedAgain) {
  CoreFixture master;
  master.Register(Shards(2));
  const LeasedShard lost = master.FetchShard(Worker(0));
  master.ReportTask(master.FetchShard(Worker(0)));
  const LeasedShard again = master.FetchShard(Worker(1));
  ASSERT_EQ(again.key, lost.key);

  master.ReportTask(lost);
  EXPECT_EQ(master.Data().records_done, 10);
  master.ReportTask(again);
  EXPECT_EQ(master.Data().records_done, 20);
}

TEST(CompatApiSuspects, DoNotExistForAReplicaOnceSeenOutOfOrder) {
  CoreFixture master;
  master.Register(Shards(5));
  const LeasedShard first = master.FetchShard(Worker(0));
  const LeasedShard second = master.FetchShard(Worker(0));
  master.ReportTask(second);
  master.ReportTask(first);  // the lease had arrived: this replica reports out of order
  const LeasedShard third = master.FetchShard(Worker(0));
  const LeasedShard fourth = master.FetchShard(Worker(0));
  master.FetchShard(Worker(1));

  master.ReportTask(fourth);

  EXPECT_FALSE(master.Fetch(Worker(2)).answer.answered()) << "the third was leased again";
  master.ReportTask(third);
  EXPECT_EQ(master.Data().records_done, 40);
}

TEST(CompatApiSuspects, AreOfTheSameDatasetOnly) {
  CoreFixture master;
  master.Register(Shards(1));
  DatasetSpec evaluation = Shards(1);
  evaluation.name = "eval";
  master.Register(evaluation);
  master.FetchShard(Worker(0));
  const LeasedShard judged = master.FetchShard(Worker(0), "eval");

  master.ReportTask(judged);

  EXPECT_FALSE(master.Fetch(Worker(1)).answer.answered());
}

TEST(CompatApi, TakesBackTheGrantOfACancelledFetch) {
  CoreFixture master;
  master.Register(Shards(1));
  const HeldFetch fetch = master.Fetch(Worker(0));
  const LeasedShard granted = **fetch.answer;

  EXPECT_FALSE(master.core().compat_api().FetchCut(fetch.call, Worker(0), granted.lease));
  master.Commit();

  EXPECT_EQ(master.FetchShard(Worker(1)).key, granted.key);
}

TEST(CompatApi, GrantsNothingToAFetchThatWasCancelledWhileHeld) {
  CoreFixture master;
  master.Register(Shards(1));
  const LeasedShard shard = master.FetchShard(Worker(0));
  const HeldFetch cut = master.Fetch(Worker(1));

  EXPECT_TRUE(master.core().compat_api().FetchCut(cut.call, Worker(1), std::nullopt));
  master.ReportTask(shard, "bad record");

  EXPECT_FALSE(cut.answer.answered());
  EXPECT_EQ(master.Data().leases, 0);
}

// Programs that interpret a lost master as the end of the data.

TEST(CompatApiLeaving, IsUnansweredWhenTheMasterDiedWithTheFetch) {
  CoreFixture master(WorkersOnly(2));
  master.StartReplicas();
  master.Register(Shards(5));
  master.FetchShard(Worker(0));
  master.FetchShard(Worker(1));
  master.CrashAndReload();

  master.Exit(NameOf(Worker(0)), Succeeded());

  EXPECT_EQ(master.StateOf(NameOf(Worker(0))), job::ReplicaState::kKilled);
  ASSERT_EQ(master.TakeLaunches().size(), 1u);
  EXPECT_EQ(master.FetchShard(Worker(1)).key, (ShardPosition{0, 0}));
}

TEST(CompatApiLeaving, IsVoluntaryWhenTheLastFetchWasAnswered) {
  CoreFixture master(WorkersOnly(2));
  master.StartReplicas();
  master.Register(Shards(5));
  master.FetchShard(Worker(0));

  master.Exit(NameOf(Worker(0)), Succeeded());

  EXPECT_EQ(master.StateOf(NameOf(Worker(0))), job::ReplicaState::kSucceeded);
  EXPECT_TRUE(master.TakeLaunches().empty());
}

TEST(CompatApiLeaving, IsVoluntaryAfterAFetchFromTheNewMaster) {
  CoreFixture master(WorkersOnly(2));
  master.StartReplicas();
  master.Register(Shards(5));
  master.FetchShard(Worker(0));
  master.CrashAndReload();
  master.FetchShard(Worker(0));

  master.Exit(NameOf(Worker(0)), Succeeded());

  EXPECT_EQ(master.StateOf(NameOf(Worker(0))), job::ReplicaState::kSucceeded);
}

TEST(CompatApiLeaving, IsVoluntaryAfterTheEndOfDataWasAnswered) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  master.Register(Shards(1));
  master.FetchShard(Worker(0));
  ASSERT_TRUE(IsEndOfData(master.Fetch(Worker(0))));
  master.CrashAndReload();

  master.Exit(NameOf(Worker(0)), Succeeded());

  EXPECT_EQ(master.StateOf(NameOf(Worker(0))), job::ReplicaState::kSucceeded);
}

TEST(CompatApiLeaving, IsUnansweredWhenItLivedOnAfterItsFetchWasCut) {
  CoreFixture master(WorkersOnly(2));
  master.StartReplicas();
  master.Register(Shards(1));
  master.FetchShard(Worker(0));
  const HeldFetch cut = master.Fetch(Worker(1));
  master.core().compat_api().FetchCut(cut.call, Worker(1), std::nullopt);
  master.LetPass(seconds(3));

  master.Exit(NameOf(Worker(1)), Succeeded());

  EXPECT_EQ(master.StateOf(NameOf(Worker(1))), job::ReplicaState::kKilled);
}

TEST(CompatApiLeaving, IsVoluntaryWhenTheFetchEndedWithTheProcess) {
  CoreFixture master(WorkersOnly(2));
  master.StartReplicas();
  master.Register(Shards(1));
  master.FetchShard(Worker(0));
  const HeldFetch cut = master.Fetch(Worker(1));
  master.core().compat_api().FetchCut(cut.call, Worker(1), std::nullopt);

  master.Exit(NameOf(Worker(1)), Succeeded());

  EXPECT_EQ(master.StateOf(NameOf(Worker(1))), job::ReplicaState::kSucceeded);
}

// A shard that takes too long.

TEST(CompatApiHang, ReclaimsAShardAfterThreeHundredSeconds) {
  CoreFixture master;
  master.Register(Shards(1));
  const LeasedShard hanging = master.FetchShard(Worker(0));
  const HeldFetch held = master.Fetch(Worker(1));

  master.LetPass(seconds(300));
  EXPECT_FALSE(held.answer.answered());
  master.LetPass(seconds(1));

  ASSERT_TRUE(held.answer.answered());
  EXPECT_EQ((*held.answer)->key, hanging.key);
  master.ReportTask(hanging);
  EXPECT_EQ(master.Data().records_done, 0);
}

TEST(CompatApiHang, AllowsFiveTimesTheSlowestShard) {
  CoreFixture master;
  master.Register(Shards(2));
  const LeasedShard slow = master.FetchShard(Worker(0));
  master.LetPass(seconds(100));
  master.ReportTask(slow);
  master.FetchShard(Worker(0));

  master.LetPass(seconds(500));
  EXPECT_EQ(master.Data().leases, 1);
  master.LetPass(seconds(1));

  EXPECT_EQ(master.Data().leases, 0);
}

TEST(CompatApiHang, StandsStillWhileTheHolderWaits) {
  CoreFixture master;
  master.StartReplicas();
  master.Register(Shards(2));
  OurClient steady(master, Worker(1));
  steady.Lease();
  master.FetchShard(Worker(0));
  master.LetPass(seconds(200));
  const HeldFetch waits = master.Fetch(Worker(0));
  master.LetPass(std::chrono::minutes(50));
  ASSERT_EQ(master.Data().leases, 2);
  master.core().compat_api().FetchCut(waits.call, Worker(0), std::nullopt);

  master.LetPass(seconds(99));
  EXPECT_EQ(master.Data().leases, 2);
  master.LetPass(seconds(2));

  EXPECT_EQ(master.Data().leases, 1);
}

TEST(CompatApiHang, GivesOurClientsAnHourForTheFirstShard) {
  CoreFixture master;
  master.Register(Shards(1));
  OurClient sends_heartbeats(master, Worker(0));
  sends_heartbeats.Lease();

  master.LetPass(std::chrono::minutes(20));

  EXPECT_EQ(master.Data().leases, 1);
}

TEST(CompatApi, TakesNoReportOfALeaseOfOurOwnClients) {
  CoreFixture master;
  master.Register(Shards(2));
  OurClient ours(master, Worker(0));
  const LeasedShard shard = ours.Lease();

  master.ReportTask(shard);  // any caller can guess its number

  EXPECT_EQ(master.Data().records_done, 0);
  EXPECT_EQ(ours.Report(shard), ReportVerdict::kAccepted);
}

TEST(CompatApi, OpensSessionsForSoManyUnknownCallersOnly) {
  CoreFixture master;
  master.Register(Shards(5000));
  for (int64_t id = 0; id < 1024; ++id) master.FetchShard(Worker(1000 + id));

  const HeldFetch refused = master.Fetch(Worker(99'999));

  ASSERT_TRUE(refused.answer.answered());
  EXPECT_THAT(refused.answer.result(), StatusIs(Code::kResourceExhausted));
  master.FetchShard(Worker(1000));
}

// The replica of a caller.

TEST(CompatApi, KnowsTheRoleFromTheWorkerIdOrTheType) {
  EXPECT_EQ(CompatApi::ReplicaOf(3, ""), Worker(3));
  EXPECT_EQ(CompatApi::ReplicaOf(1'000'000, ""), Chief(0));
  EXPECT_EQ(CompatApi::ReplicaOf(2'000'001, "worker"), (ReplicaRef{job::Role::kEvaluator, 1}));
  EXPECT_EQ(CompatApi::ReplicaOf(0, "chief"), Chief(0));
  EXPECT_EQ(CompatApi::ReplicaOf(0, "master"), Worker(0));
}

TEST(CompatApi, LetsPollersThroughABarrierOnceAllCame) {
  CoreFixture master(WorkersOnly(2));
  master.StartReplicas();
  const auto sync = [&](ReplicaRef replica) {
    const Later<bool> answer;
    master.core().compat_api().WorkerSync("init", replica, answer.reply());
    master.Commit();
    return *answer;
  };

  EXPECT_FALSE(sync(Worker(0)));
  EXPECT_FALSE(sync(Worker(0)));
  EXPECT_TRUE(sync(Worker(1)));
  EXPECT_TRUE(sync(Worker(0)));
}

}  // namespace
}  // namespace edl::master
