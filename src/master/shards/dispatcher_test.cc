#include "master/shards/dispatcher.h"

#include <algorithm>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

TEST(Dispatcher, LeasesSeveralShardsInOrderAtOnce) {
  CoreFixture master;
  master.Register(Shards(5));
  OurClient worker(master, Worker(0));

  const std::vector<LeasedShard> shards = worker.LeaseMany(3);

  ASSERT_EQ(shards.size(), 3u);
  for (size_t i = 0; i < shards.size(); ++i) {
    EXPECT_EQ(shards[i].start, static_cast<int64_t>(i) * 10);
    EXPECT_EQ(shards[i].end, static_cast<int64_t>(i) * 10 + 10);
  }
  EXPECT_LT(shards[0].lease, shards[1].lease);
}

TEST(Dispatcher, GivesWhatThereIsWhenFewerShardsAreLeft) {
  CoreFixture master;
  master.Register(Shards(2));
  OurClient worker(master, Worker(0));

  EXPECT_EQ(worker.LeaseMany(5).size(), 2u);
}

TEST(Dispatcher, ComputesSoManyShuffledIndicesForOneAnswerOnly) {
  CoreFixture master;
  DatasetSpec spec = Shards(10);
  spec.order = Order::kShuffleRecords;
  spec.batch_size = int64_t{1} << 17;
  spec.batches_per_shard = 1;
  spec.size = 10 * spec.batch_size;
  master.Register(spec);
  OurClient worker(master, Worker(0));

  EXPECT_EQ(worker.LeaseMany(10).size(), 2u);
}

TEST(Dispatcher, LeasesTheNextEpochBeforeTheLastIsReported) {
  CoreFixture master;
  master.Register(Shards(1, /*epochs=*/2));
  OurClient one(master, Worker(0));
  OurClient other(master, Worker(1));

  EXPECT_EQ(one.Lease().key, (ShardPosition{0, 0}));
  EXPECT_EQ(other.Lease().key, (ShardPosition{1, 0}));
}

TEST(Dispatcher, CountsDistinctBatchesAsTheJobsVersion) {
  CoreFixture master;
  master.Register(Shards(2));
  OurClient worker(master, Worker(0));
  const LeasedShard shard = worker.Lease();

  EXPECT_EQ(worker.Report(shard), ReportVerdict::kAccepted);
  EXPECT_EQ(worker.Report(shard), ReportVerdict::kLost);

  EXPECT_EQ(master.core().dispatcher().counters().version, 2);
  EXPECT_EQ(master.Data().records_done, 10);
}

TEST(Dispatcher, GivesADeadWorkersShardFirstToTheNext) {
  CoreFixture master;
  master.StartReplicas();
  master.Register(Shards(5));
  OurClient dying(master, Worker(0));
  OurClient next(master, Worker(1));
  const LeasedShard lost = dying.Lease();

  master.Exit(NameOf(Worker(0)), Killed());

  const LeasedShard shard = next.Lease();
  EXPECT_EQ(shard.key, lost.key);
  EXPECT_GT(shard.lease, lost.lease);
  EXPECT_EQ(master.Data().shards_repeated, 1);
}

TEST(Dispatcher, DoesNotCountTheLateReportOfAReclaimedLease) {
  CoreFixture master;
  master.Register(Shards(2));
  OurClient slow(master, Worker(0));
  OurClient next(master, Worker(1));
  const LeasedShard lost = slow.Lease();
  slow.Acknowledge();
  slow.Rejoin({});
  const LeasedShard again = next.Lease();
  ASSERT_EQ(again.key, lost.key);

  EXPECT_EQ(slow.Report(lost), ReportVerdict::kLost);
  EXPECT_EQ(master.Data().records_done, 0);
  EXPECT_EQ(next.Report(again), ReportVerdict::kAccepted);
  EXPECT_EQ(master.Data().records_done, 10);
}

TEST(Dispatcher, LosesAReportByAnotherThanTheHolder) {
  CoreFixture master;
  master.Register(Shards(1));
  OurClient holder(master, Worker(0));
  OurClient other(master, Worker(1));
  const LeasedShard shard = holder.Lease();

  EXPECT_EQ(other.Report(shard), ReportVerdict::kLost);
  EXPECT_EQ(holder.Report(shard), ReportVerdict::kAccepted);
}

TEST(Dispatcher, LeasesAgainWhatIsGivenBackWithoutCountingAFailure) {
  CoreFixture master;
  master.Register(Shards(1));
  OurClient worker(master, Worker(0));
  for (int times = 0; times < 2 * Dataset::kMaxFailures; ++times) {
    EXPECT_EQ(worker.Report(worker.Lease(), ShardOutcome::kGivenBack), ReportVerdict::kAccepted);
  }

  EXPECT_EQ(master.Data().shards_quarantined, 0);
  EXPECT_EQ(worker.Report(worker.Lease()), ReportVerdict::kAccepted);
  EXPECT_TRUE(master.Data().finished);
}

TEST(Dispatcher, ResumesLeasesCountersAndProgressAfterACrash) {
  CoreFixture master;
  master.Register(Shards(4));
  OurClient worker(master, Worker(0));
  worker.Report(worker.Lease());
  const LeasedShard open = worker.Lease();

  master.CrashAndReload();

  EXPECT_EQ(master.Data().records_done, 10);
  EXPECT_EQ(master.core().dispatcher().counters().version, 2);
  EXPECT_EQ(worker.Report(open), ReportVerdict::kAccepted);
  const LeasedShard next = worker.Lease();
  EXPECT_EQ(next.key, (ShardPosition{0, 2}));
  EXPECT_GT(next.lease, open.lease);
}

TEST(Dispatcher, ForgetsWhatWasNotCommitted) {
  CoreFixture master;
  master.Register(Shards(2));
  OurClient worker(master, Worker(0));
  const LeasedShard shard = worker.Lease();
  const Later<ReportAndLeaseReply> answer;
  master.core().master_api().ReportAndLease({.call = master.NextCall(),
                                             .incarnation = worker.incarnation(),
                                             .number = 2,
                                             .received = 1,
                                             .reports = {{.lease = shard.lease}}},
                                            answer.reply());

  master.CrashAndReload();

  EXPECT_FALSE(answer.answered());
  EXPECT_EQ(master.Data().records_done, 0);
  EXPECT_EQ(worker.Report(shard), ReportVerdict::kAccepted);
}

TEST(Dispatcher, KeepsTheFirstRegistrationOfAName) {
  CoreFixture master;
  master.Register(Shards(4));

  const Dataset& dataset = master.Register(Shards(9));

  EXPECT_EQ(dataset.spec().size, 40);
}

TEST(Dispatcher, TakesTheJobsShardSizeWhenACallerNamesNone) {
  CoreFixture master;
  DatasetSpec spec = Shards(4);
  spec.batches_per_shard = 0;
  master.spec().num_minibatches_per_task = 4;

  EXPECT_EQ(master.Register(spec).records_per_shard(), 20);
}

TEST(Dispatcher, VoidsOpenLeasesWhenADatasetIsReset) {
  CoreFixture master;
  master.Register(Shards(2));
  OurClient worker(master, Worker(0));
  worker.Report(worker.Lease());
  const LeasedShard old = worker.Lease();

  ASSERT_OK(master.core().Reset(kData));
  master.Commit();

  EXPECT_EQ(worker.Report(old), ReportVerdict::kLost);
  EXPECT_EQ(master.Data().records_done, 0);
  const LeasedShard first = worker.Lease();
  EXPECT_EQ(first.key, (ShardPosition{0, 0}));
  EXPECT_EQ(first.generation, 2u);
  EXPECT_THAT(master.core().Reset("nothing"), StatusIs(Code::kNotFound));
}

TEST(Dispatcher, AResetHoldsOverACrash) {
  CoreFixture master;
  master.Register(Shards(2));
  OurClient worker(master, Worker(0));
  worker.Report(worker.Lease());
  const LeasedShard old = worker.Lease();
  ASSERT_OK(master.core().Reset(kData));
  master.Commit();

  master.CrashAndReload();

  EXPECT_EQ(worker.Report(old), ReportVerdict::kLost);
  EXPECT_EQ(worker.LeaseMany(5).size(), 2u);
}

// Bad data.

TEST(DispatcherFailures, SendsAFailedShardToAnotherWorkerThatWaits) {
  CoreFixture master;
  master.Register(Shards(2));
  OurClient one(master, Worker(0));
  OurClient other(master, Worker(1));
  const LeasedShard bad = one.Lease();
  other.Lease();
  const Later<ReportAndLeaseReply> waiting = other.Ask();
  ASSERT_FALSE(waiting.answered());

  one.Report(bad, ShardOutcome::kFailed, "bad record");

  ASSERT_TRUE(waiting.answered());
  EXPECT_EQ(waiting->shards.front().key, bad.key);
}

TEST(DispatcherFailures, LetsTheOnlyWorkerRetryItsOwnFailure) {
  CoreFixture master;
  master.Register(Shards(1));
  OurClient only(master, Worker(0));
  const LeasedShard bad = only.Lease();

  only.Report(bad, ShardOutcome::kFailed, "bad record");

  EXPECT_EQ(only.Lease().key, bad.key);
}

TEST(DispatcherFailures, DoesNotLetTwoWorkersThatFailedAShardWaitForEachOther) {
  CoreFixture master;
  master.Register(Shards(2));
  OurClient one(master, Worker(0));
  OurClient other(master, Worker(1));
  const LeasedShard bad = one.Lease();
  const LeasedShard good = other.Lease();
  one.Report(bad, ShardOutcome::kFailed, "bad record");
  other.Report(other.Lease(), ShardOutcome::kFailed, "bad record");

  const Later<ReportAndLeaseReply> first = one.Ask();
  const Later<ReportAndLeaseReply> second = other.ReportAndLease({{.lease = good.lease}});

  ASSERT_TRUE(first.answered() || second.answered()) << "both wait for each other";
  OurClient& third = first.answered() ? one : other;
  const LeasedShard again = (first.answered() ? first : second)->shards.front();
  third.Report(again, ShardOutcome::kFailed, "bad record");
  EXPECT_EQ(master.Data().shards_quarantined, 1);
  EXPECT_TRUE(master.Data().finished);
}

TEST(DispatcherFailures, CountsFailuresOverACrash) {
  CoreFixture master;
  master.Register(Shards(1));
  OurClient worker(master, Worker(0));
  for (int times = 0; times < Dataset::kMaxFailures; ++times) {
    worker.Report(worker.Lease(), ShardOutcome::kFailed, "bad record");
    master.CrashAndReload();
  }

  EXPECT_EQ(master.Data().shards_quarantined, 1);
}

TEST(DispatcherFailures, NeverCountsTheLossOfAWorker) {
  CoreFixture master;
  master.Register(Shards(1));
  for (int life = 0; life < 2 * Dataset::kMaxFailures; ++life) {
    OurClient worker(master, Worker(life));
    worker.Lease();
    master.core().master_api().Leave(worker.incarnation(), Later<Done>().reply());
    master.Commit();
  }

  EXPECT_EQ(master.Data().shards_quarantined, 0);
}

// The end of a dataset.

TEST(DispatcherEnd, TellsNobodyWhileSomeoneWhoDoesNotWaitHoldsALease) {
  CoreFixture master;
  master.Register(Shards(2));
  OurClient busy(master, Worker(0));
  OurClient waiting(master, Worker(1));
  busy.Lease();
  waiting.Lease();

  const Later<ReportAndLeaseReply> answer = waiting.Ask();
  master.LetPass(seconds(60));

  EXPECT_FALSE(answer.answered());
}

TEST(DispatcherEnd, TellsAllButTheOldestFirstWhenThereIsNoChief) {
  CoreFixture master;
  master.Register(Shards(3));
  OurClient oldest(master, Worker(0));
  OurClient second(master, Worker(1));
  OurClient third(master, Worker(2));
  oldest.Lease();
  const LeasedShard of_second = second.Lease();
  const LeasedShard of_third = third.Lease();

  const Later<ReportAndLeaseReply> last = oldest.Ask();
  const Later<ReportAndLeaseReply> told_second = second.Ask();
  const Later<ReportAndLeaseReply> told_third = third.Ask();

  ASSERT_TRUE(told_second.answered());
  ASSERT_TRUE(told_third.answered());
  EXPECT_EQ(told_second->answer, LeaseAnswer::kFinished);
  EXPECT_EQ(told_third->answer, LeaseAnswer::kFinished);
  EXPECT_FALSE(last.answered());
  second.Report(of_second);
  EXPECT_FALSE(last.answered());
  third.Report(of_third);
  ASSERT_TRUE(last.answered());
  EXPECT_EQ(last->answer, LeaseAnswer::kFinished);
}

TEST(DispatcherEnd, TellsTheChiefLastHoweverYoungItIs) {
  CoreFixture master(TensorFlowJob(1, 0, 0));
  master.StartReplicas();
  master.Register(Shards(2));
  OurClient worker(master, Worker(0));
  OurClient chief(master, Chief());
  const LeasedShard of_worker = worker.Lease();
  chief.Lease();

  const Later<ReportAndLeaseReply> told_worker = worker.Ask();
  const Later<ReportAndLeaseReply> told_chief = chief.Ask();

  ASSERT_TRUE(told_worker.answered());
  EXPECT_EQ(told_worker->answer, LeaseAnswer::kFinished);
  EXPECT_FALSE(told_chief.answered());
  worker.Report(of_worker);
  ASSERT_TRUE(told_chief.answered());
  EXPECT_EQ(told_chief->answer, LeaseAnswer::kFinished);
}

TEST(DispatcherEnd, LetsTheChiefTakeWhatTheOthersLose) {
  CoreFixture master(TensorFlowJob(1, 0, 0));
  master.StartReplicas();
  master.Register(Shards(2));
  OurClient worker(master, Worker(0));
  OurClient chief(master, Chief());
  const LeasedShard dropped = worker.Lease();
  chief.Lease();
  const Later<ReportAndLeaseReply> chief_waits = chief.Ask();
  ASSERT_EQ(worker.Ask()->answer, LeaseAnswer::kFinished);

  master.Exit(NameOf(Worker(0)), Succeeded());

  ASSERT_TRUE(chief_waits.answered());
  ASSERT_EQ(chief_waits->answer, LeaseAnswer::kShards);
  EXPECT_EQ(chief_waits->shards.front().key, dropped.key);
}

TEST(DispatcherEnd, DoesNotWaitForAChiefThatReadsOtherData) {
  CoreFixture master(TensorFlowJob(1, 0, 0));
  master.StartReplicas();
  master.Register(Shards(1));
  OurClient chief(master, Chief());
  OurClient worker(master, Worker(0));
  worker.Lease();

  const Later<ReportAndLeaseReply> told = worker.Ask();

  ASSERT_TRUE(told.answered());
  EXPECT_EQ(told->answer, LeaseAnswer::kFinished);
}

TEST(DispatcherEnd, TellsALoneHolderAtOnce) {
  CoreFixture master;
  master.Register(Shards(1));
  OurClient only(master, Worker(0));
  const LeasedShard last = only.Lease();

  EXPECT_EQ(only.Ask()->answer, LeaseAnswer::kFinished);
  EXPECT_EQ(only.Report(last), ReportVerdict::kAccepted);
  EXPECT_TRUE(master.Data().finished);
}

TEST(DispatcherEnd, TellsACallerAgainThatWasToldBefore) {
  CoreFixture master;
  master.Register(Shards(2));
  OurClient oldest(master, Worker(0));
  OurClient told(master, Worker(1));
  oldest.Lease();
  told.Lease();
  const Later<ReportAndLeaseReply> held = oldest.Ask();
  ASSERT_EQ(told.Ask()->answer, LeaseAnswer::kFinished);

  const Later<ReportAndLeaseReply> again = told.Ask();

  ASSERT_TRUE(again.answered());
  EXPECT_EQ(again->answer, LeaseAnswer::kFinished);
  EXPECT_FALSE(held.answered());
}

TEST(DispatcherEnd, LeasesALateLossToACallThatStillWaits) {
  CoreFixture master;
  master.Register(Shards(2));
  OurClient oldest(master, Worker(0));
  OurClient told(master, Worker(1));
  oldest.Lease();
  const LeasedShard lost = told.Lease();
  const Later<ReportAndLeaseReply> held = oldest.Ask();
  ASSERT_EQ(told.Ask()->answer, LeaseAnswer::kFinished);

  master.FallSilent(told.incarnation());
  master.LetPass(MasterApi::kSilence + seconds(1));

  ASSERT_TRUE(held.answered());
  ASSERT_EQ(held->answer, LeaseAnswer::kShards);
  EXPECT_EQ(held->shards.front().key, lost.key);
}

TEST(DispatcherEnd, FreesTheOldestWhenTheChiefIsGoneForGood) {
  CoreFixture master(TensorFlowJob(2, 0, 0));
  master.StartReplicas();
  master.Register(Shards(3));
  OurClient one(master, Worker(0));
  OurClient other(master, Worker(1));
  OurClient chief(master, Chief());
  chief.Report(chief.Lease());
  one.Lease();
  const LeasedShard of_other = other.Lease();
  master.Exit(NameOf(Chief()), Succeeded());

  const Later<ReportAndLeaseReply> told_one = one.Ask();
  const Later<ReportAndLeaseReply> told_other = other.Ask();

  ASSERT_TRUE(told_other.answered());
  EXPECT_FALSE(told_one.answered());
  other.Report(of_other);
  ASSERT_TRUE(told_one.answered());
  EXPECT_EQ(told_one->answer, LeaseAnswer::kFinished);
}

}  // namespace
}  // namespace edl::master
