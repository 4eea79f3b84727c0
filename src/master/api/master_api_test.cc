#include "master/api/master_api.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

std::vector<LeaseId> LeasesIn(const ReportAndLeaseReply& reply) {
  std::vector<LeaseId> leases;
  for (const LeasedShard& shard : reply.shards) leases.push_back(shard.lease);
  return leases;
}

// Numbered calls.

TEST(MasterApiCalls, AnswerTheSameNumberTheSame) {
  CoreFixture master;
  master.Register(Shards(5));
  OurClient worker(master, Worker(0));
  const LeasedShard done = worker.Lease();
  const Later<ReportAndLeaseReply> first = worker.ReportAndLease({{.lease = done.lease}}, 2);

  const Later<ReportAndLeaseReply> again = worker.Repeat();

  ASSERT_TRUE(again.answered());
  EXPECT_EQ(LeasesIn(*again), LeasesIn(*first));
  EXPECT_EQ(again->verdicts, (std::vector<ReportVerdict>{ReportVerdict::kAccepted}));
  EXPECT_EQ(master.Data().records_done, 10);
  EXPECT_EQ(master.Data().leases, 2);
}

TEST(MasterApiCalls, AnswerTheSameNumberTheSameAfterACrash) {
  CoreFixture master;
  master.Register(Shards(5));
  OurClient worker(master, Worker(0));
  const LeasedShard done = worker.Lease();
  const Later<ReportAndLeaseReply> first = worker.ReportAndLease({{.lease = done.lease}}, 2);

  master.CrashAndReload();
  const Later<ReportAndLeaseReply> again = worker.Repeat();

  ASSERT_TRUE(again.answered());
  EXPECT_EQ(LeasesIn(*again), LeasesIn(*first));
  EXPECT_EQ(again->shards.front().start, first->shards.front().start);
  EXPECT_EQ(again->verdicts, first->verdicts);
  EXPECT_EQ(master.Data().leases, 2);
}

TEST(MasterApiCalls, RepeatFinishedAfterACrash) {
  CoreFixture master;
  master.Register(Shards(1));
  OurClient worker(master, Worker(0));
  worker.Report(worker.Lease());
  ASSERT_EQ(worker.Ask()->answer, LeaseAnswer::kFinished);

  master.CrashAndReload();

  EXPECT_EQ(worker.Repeat()->answer, LeaseAnswer::kFinished);
}

TEST(MasterApiCalls, PassAHeldCallToItsRepetition) {
  CoreFixture master;
  master.Register(Shards(1));
  OurClient holder(master, Worker(0));
  OurClient waiting(master, Worker(1));
  const LeasedShard shard = holder.Lease();
  const Later<ReportAndLeaseReply> first = waiting.Ask();

  const Later<ReportAndLeaseReply> second = waiting.Repeat();

  ASSERT_TRUE(first.answered());
  EXPECT_EQ(first->answer, LeaseAnswer::kRetry);
  EXPECT_FALSE(second.answered());
  EXPECT_EQ(master.core().dispatcher().waiting(), 1u);
  holder.Report(shard, ShardOutcome::kGivenBack);
  ASSERT_TRUE(second.answered());
  EXPECT_EQ(second->shards.front().key, shard.key);
}

TEST(MasterApiCalls, KeepTheReportsOfACallWhoseLeasePartWasHeld) {
  CoreFixture master;
  master.Register(Shards(2));
  OurClient holder(master, Worker(0));
  OurClient waiting(master, Worker(1));
  holder.Lease();
  holder.Acknowledge();
  const LeasedShard done = waiting.Lease();
  const Later<ReportAndLeaseReply> held = waiting.ReportAndLease({{.lease = done.lease}}, 1);
  ASSERT_FALSE(held.answered());
  ASSERT_EQ(master.Data().records_done, 10);

  master.CrashAndReload();
  const Later<ReportAndLeaseReply> again = waiting.Repeat();
  EXPECT_FALSE(again.answered());
  holder.Rejoin({});

  ASSERT_TRUE(again.answered());
  EXPECT_EQ(again->answer, LeaseAnswer::kShards);
  EXPECT_EQ(again->verdicts, (std::vector<ReportVerdict>{ReportVerdict::kAccepted}));
  EXPECT_EQ(master.Data().records_done, 10);
}

TEST(MasterApiCalls, AnswerWaitAtTheirDeadlineAndHoldTheNextCall) {
  CoreFixture master;
  master.Register(Shards(1));
  OurClient holder(master, Worker(0));
  OurClient waiting(master, Worker(1));
  holder.Lease();
  const Later<ReportAndLeaseReply> held = waiting.ReportAndLease({}, 1, seconds(5));

  master.LetPass(seconds(4));
  EXPECT_FALSE(held.answered());
  master.LetPass(seconds(1));

  ASSERT_TRUE(held.answered());
  EXPECT_EQ(held->answer, LeaseAnswer::kWait);
  EXPECT_FALSE(waiting.Ask().answered());
}

TEST(MasterApiCalls, SayThatADatasetIsUnknown) {
  CoreFixture master;
  OurClient worker(master, Worker(0));

  EXPECT_EQ(worker.Ask()->answer, LeaseAnswer::kUnknownDataset);
}

TEST(MasterApiCalls, RefuseANumberWhoseAnswerArrived) {
  CoreFixture master;
  master.Register(Shards(5));
  OurClient worker(master, Worker(0));
  worker.Lease();
  worker.Lease();

  const Later<ReportAndLeaseReply> old = master.ReportAndLease(
      {.incarnation = worker.incarnation(), .number = 1, .dataset = kData, .lease_at_most = 1});

  EXPECT_THAT(old.result(), StatusIs(Code::kInvalidArgument));
  EXPECT_EQ(master.Data().leases, 2);
}

TEST(MasterApiCalls, TurnIntoWaitWhenARepeatedGrantWasVoidedByAReset) {
  CoreFixture master;
  master.Register(Shards(2));
  OurClient worker(master, Worker(0));
  worker.Lease();
  ASSERT_OK(master.core().Reset(kData));

  EXPECT_EQ(worker.Repeat()->answer, LeaseAnswer::kWait);
}

TEST(MasterApiCalls, GrantNothingToACallThatWasAbandoned) {
  CoreFixture master;
  master.Register(Shards(1));
  OurClient holder(master, Worker(0));
  OurClient gone(master, Worker(1));
  const LeasedShard shard = holder.Lease();
  const Later<ReportAndLeaseReply> held = gone.Ask();
  const uint64_t call_of_it = master.NextCall() - 1;

  master.core().master_api().Abandon(call_of_it);
  holder.Report(shard, ShardOutcome::kGivenBack);

  EXPECT_FALSE(held.answered());
  EXPECT_EQ(master.Data().leases, 0);
}

TEST(MasterApiCalls, GrantNoMoreThanTheMostShardsACallMayHave) {
  CoreFixture master;
  master.Register(Shards(2000));
  OurClient worker(master, Worker(0));

  EXPECT_EQ(worker.LeaseMany(1'000'000).size(), MasterApi::kMostShardsPerCall);
}

// Members of the job.

TEST(MasterApiMembers, GetANewIncarnationEachThatIsNeverUsedAgain) {
  CoreFixture master;
  OurClient first(master, Worker(0));
  master.core().master_api().Leave(first.incarnation(), Later<Done>().reply());
  master.Commit();
  master.CrashAndReload();

  OurClient second(master, Worker(0));

  EXPECT_GT(second.incarnation(), first.incarnation());
}

TEST(MasterApiMembers, KeepTheLeasesThatARejoinListsAndLoseTheOthers) {
  CoreFixture master;
  master.Register(Shards(3));
  OurClient worker(master, Worker(0));
  OurClient other(master, Worker(1));
  const std::vector<LeasedShard> held = worker.LeaseMany(3);
  worker.Acknowledge();
  const Incarnation before = worker.incarnation();
  master.CrashAndReload();

  const std::vector<LeaseId> kept = worker.Rejoin({held[1].lease});

  EXPECT_EQ(worker.incarnation(), before);
  EXPECT_EQ(kept, (std::vector<LeaseId>{held[1].lease}));
  EXPECT_EQ(worker.Report(held[1]), ReportVerdict::kAccepted);
  EXPECT_EQ(worker.Report(held[0]), ReportVerdict::kLost);
  EXPECT_EQ(other.LeaseMany(3).size(), 2u);
}

TEST(MasterApiMembers, KeepTheLeasesOfAnAnswerThatIsStillOnItsWay) {
  CoreFixture master;
  master.Register(Shards(2));
  OurClient worker(master, Worker(0));
  const LeasedShard unseen = worker.Lease();  // the connection broke before the answer

  worker.Rejoin({});
  const Later<ReportAndLeaseReply> again = worker.Repeat();

  EXPECT_EQ(LeasesIn(*again), (std::vector<LeaseId>{unseen.lease}));
  EXPECT_EQ(worker.Report(unseen), ReportVerdict::kAccepted);
}

TEST(MasterApiMembers, AreRefusedAfterTheyWereLost) {
  CoreFixture master;
  master.Register(Shards(2));
  OurClient worker(master, Worker(0));
  worker.Lease();
  master.core().master_api().Leave(worker.incarnation(), Later<Done>().reply());
  master.Commit();

  EXPECT_THAT(master.Heartbeat(worker.incarnation()), StatusIs(Code::kAborted));
  EXPECT_THAT(worker.Ask().result(), StatusIs(Code::kAborted));
  EXPECT_EQ(
      master.core().master_api().Watch(worker.incarnation(), 1, [](const Membership&) {}).code(),
      Code::kAborted);
  const Incarnation old = worker.incarnation();
  EXPECT_TRUE(worker.Rejoin({}).empty());
  EXPECT_GT(worker.incarnation(), old);
}

TEST(MasterApiMembers, CannotJoinAsAReplicaThatHasEnded) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  master.Exit(NameOf(Worker(0)), Killed());

  const auto joined = master.TryJoin({.replica = Worker(0)});

  EXPECT_THAT(joined, StatusIs(Code::kFailedPrecondition));
  EXPECT_NE(joined.status().message().find(NameOf(Worker(0))), std::string::npos);
}

TEST(MasterApiMembers, LoseTheirLeasesAfterThirtySilentSeconds) {
  CoreFixture master;
  master.Register(Shards(1));
  OurClient silent(master, Worker(0));
  OurClient waiting(master, Worker(1));
  silent.Lease();
  const Later<ReportAndLeaseReply> held = waiting.Ask();
  master.FallSilent(silent.incarnation());

  master.LetPass(MasterApi::kSilence);
  EXPECT_FALSE(held.answered());
  master.LetPass(milliseconds(500));

  ASSERT_TRUE(held.answered());
  EXPECT_EQ(held->answer, LeaseAnswer::kShards);
  EXPECT_THAT(master.Heartbeat(silent.incarnation()), StatusIs(Code::kAborted));
}

TEST(MasterApiMembers, LiveAsLongAsTheySendHeartbeats) {
  CoreFixture master;
  OurClient worker(master, Worker(0));

  master.LetPass(std::chrono::minutes(10));

  EXPECT_OK(master.Heartbeat(worker.incarnation()));
}

TEST(MasterApiMembers, LoseTheirLeasesSoonAfterTheirConnection) {
  CoreFixture master;
  master.Register(Shards(1));
  OurClient worker(master, Worker(0));
  worker.Lease();
  ASSERT_EQ(master.core().master_api().Watch(worker.incarnation(), 1, [](const Membership&) {}),
            Ok());
  master.FallSilent(worker.incarnation());

  master.core().master_api().Unwatch(worker.incarnation(), 1);
  master.LetPass(MasterApi::kRejoin);
  EXPECT_EQ(master.Data().leases, 1);
  master.LetPass(milliseconds(100));

  EXPECT_EQ(master.Data().leases, 0);
}

TEST(MasterApiMembers, HearOfOthersAfterTheCommit) {
  CoreFixture master(WorkersOnly(2));
  master.StartReplicas();
  OurClient worker(master, Worker(0));
  int64_t told = 0;
  ASSERT_EQ(
      master.core().master_api().Watch(
          worker.incarnation(), 1, [&](const Membership& membership) { told = membership.count; }),
      Ok());
  ASSERT_EQ(told, 2);

  master.core().OnReplicaEvent(
      {.name = NameOf(Worker(1)), .kind = job::ReplicaEvent::Kind::kExited, .cause = Killed()}, {});
  master.core().Tick();
  EXPECT_EQ(told, 2);
  master.Commit();

  EXPECT_EQ(told, 1);
}

TEST(MasterApiMembers, LoseTheirLeasesSoonerIfTheyWereSilentBefore) {
  CoreFixture master;
  master.Register(Shards(1));
  OurClient worker(master, Worker(0));
  worker.Lease();
  MasterApi& api = master.core().master_api();
  ASSERT_EQ(api.Watch(worker.incarnation(), 1, [](const Membership&) {}), Ok());
  master.FallSilent(worker.incarnation());
  master.LetPass(seconds(3));  // until the kernel closes the connection

  api.Unwatch(worker.incarnation(), 1);
  master.LetPass(milliseconds(200));
  EXPECT_EQ(master.Data().leases, 1);
  master.LetPass(milliseconds(100));

  EXPECT_EQ(master.Data().leases, 0);
}

TEST(MasterApiMembers, KeepTheirLeasesWhenTheyReconnectInTime) {
  CoreFixture master;
  master.Register(Shards(1));
  OurClient worker(master, Worker(0));
  const LeasedShard shard = worker.Lease();
  MasterApi& api = master.core().master_api();
  ASSERT_EQ(api.Watch(worker.incarnation(), 1, [](const Membership&) {}), Ok());
  master.FallSilent(worker.incarnation());
  api.Unwatch(worker.incarnation(), 1);
  master.LetPass(milliseconds(1000));

  worker.Rejoin({shard.lease});
  ASSERT_EQ(api.Watch(worker.incarnation(), 2, [](const Membership&) {}), Ok());
  api.Unwatch(worker.incarnation(), 1);  // the end of the old stream arrives late
  master.LetPass(seconds(60));

  EXPECT_EQ(worker.Report(shard), ReportVerdict::kAccepted);
}

TEST(MasterApiMembers, HaveTimeToComeBackToARestartedMaster) {
  CoreFixture master;
  master.Register(Shards(1));
  OurClient worker(master, Worker(0));
  const LeasedShard shard = worker.Lease();
  ASSERT_EQ(master.core().master_api().Watch(worker.incarnation(), 1, [](const Membership&) {}),
            Ok());
  master.FallSilent(worker.incarnation());

  master.CrashAndReload();
  master.LetPass(seconds(9));

  EXPECT_EQ(worker.Rejoin({shard.lease}), (std::vector<LeaseId>{shard.lease}));
}

TEST(MasterApiMembers, AreNotLostByAStallOfTheMaster) {
  CoreFixture master;
  master.Register(Shards(1));
  OurClient worker(master, Worker(0));
  const LeasedShard shard = worker.Lease();

  master.Stall(seconds(15));

  EXPECT_EQ(worker.Report(shard), ReportVerdict::kAccepted);
}

TEST(MasterApiMembers, SeeEachChangeOfTheMembership) {
  CoreFixture master(WorkersOnly(2));
  master.StartReplicas();
  OurClient worker(master, Worker(0));
  std::vector<Membership> seen;
  ASSERT_EQ(master.core().master_api().Watch(worker.incarnation(), 1,
                                             [&](const Membership& now) { seen.push_back(now); }),
            Ok());
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen.back().members.size(), 2u);

  master.Exit(NameOf(Worker(1)), Killed());

  ASSERT_GE(seen.size(), 2u);
  EXPECT_EQ(seen.back().members.size(), 1u);
  EXPECT_GT(seen.back().number, seen.front().number);
  master.Running(NameOf(Worker(2)));
  ASSERT_EQ(seen.back().members.size(), 2u);
  EXPECT_EQ(seen.back().members.back().index, 1);
  EXPECT_EQ(seen.back().members.back().id, 2);
}

// Barriers and locks by incarnation.

TEST(MasterApiSync, OpensABarrierOnceAllRunningReplicasOfTheRoleArrived) {
  CoreFixture master(WorkersOnly(2));
  master.StartReplicas();
  OurClient one(master, Worker(0));
  OurClient other(master, Worker(1));
  const Later<bool> first;
  const Later<bool> second;

  master.core().master_api().Arrive(one.incarnation(), "init", seconds(60), first.reply());
  master.Commit();
  EXPECT_FALSE(first.answered());
  master.core().master_api().Arrive(other.incarnation(), "init", seconds(60), second.reply());
  master.Commit();

  EXPECT_TRUE(*first);
  EXPECT_TRUE(*second);
}

TEST(MasterApiSync, FreesTheLockOfALostMember) {
  CoreFixture master;
  OurClient holder(master, Worker(0));
  OurClient next(master, Worker(1));
  const Later<bool> had;
  const Later<bool> gets;
  master.core().master_api().AcquireLock(holder.incarnation(), "save", seconds(1), had.reply());
  master.core().master_api().AcquireLock(next.incarnation(), "save", seconds(60), gets.reply());
  master.Commit();
  ASSERT_TRUE(*had);
  ASSERT_FALSE(gets.answered());

  master.FallSilent(holder.incarnation());
  master.LetPass(MasterApi::kSilence + seconds(1));

  ASSERT_TRUE(gets.answered());
  EXPECT_TRUE(*gets);
}

TEST(MasterApiSync, RefusesUnknownIncarnations) {
  CoreFixture master;
  const Incarnation stranger(99);
  const Later<bool> arrive;
  const Later<bool> acquire;
  const Later<bool> release;

  master.core().master_api().Arrive(stranger, "init", seconds(1), arrive.reply());
  master.core().master_api().AcquireLock(stranger, "save", seconds(1), acquire.reply());
  master.core().master_api().ReleaseLock(stranger, "save", release.reply());
  master.Commit();

  EXPECT_THAT(arrive.result(), StatusIs(Code::kAborted));
  EXPECT_THAT(acquire.result(), StatusIs(Code::kAborted));
  EXPECT_THAT(release.result(), StatusIs(Code::kAborted));
}

}  // namespace
}  // namespace edl::master
