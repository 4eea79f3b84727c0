#include "master/our_door.h"

#include <vector>

#include <gtest/gtest.h>

#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

std::vector<LeaseId> LeasesIn(const ExchangeReply& reply) {
  std::vector<LeaseId> leases;
  for (const LeasedShard& shard : reply.shards) leases.push_back(shard.lease);
  return leases;
}

// Numbered calls.

TEST(OurDoorCalls, AnswerTheSameNumberTheSame) {
  CoreFixture master;
  master.Register(Shards(5));
  OurClient worker(master, Worker(0));
  const LeasedShard done = worker.Lease();
  const Later<ExchangeReply> first = worker.Exchange({{.lease = done.lease}}, 2);

  const Later<ExchangeReply> again = worker.Repeat();

  ASSERT_TRUE(again.answered());
  EXPECT_EQ(LeasesIn(*again), LeasesIn(*first));
  EXPECT_EQ(again->verdicts, (std::vector<Verdict>{Verdict::kAccepted}));
  EXPECT_EQ(master.Data().records_done, 10);
  EXPECT_EQ(master.Data().leases, 2);
}

TEST(OurDoorCalls, AnswerTheSameNumberTheSameAfterACrash) {
  CoreFixture master;
  master.Register(Shards(5));
  OurClient worker(master, Worker(0));
  const LeasedShard done = worker.Lease();
  const Later<ExchangeReply> first = worker.Exchange({{.lease = done.lease}}, 2);

  master.CrashAndReload();
  const Later<ExchangeReply> again = worker.Repeat();

  ASSERT_TRUE(again.answered());
  EXPECT_EQ(LeasesIn(*again), LeasesIn(*first));
  EXPECT_EQ(again->shards.front().start, first->shards.front().start);
  EXPECT_EQ(again->verdicts, first->verdicts);
  EXPECT_EQ(master.Data().leases, 2);
}

TEST(OurDoorCalls, RepeatFinishedAfterACrash) {
  CoreFixture master;
  master.Register(Shards(1));
  OurClient worker(master, Worker(0));
  worker.Report(worker.Lease());
  ASSERT_EQ(worker.Ask()->answer, Answer::kFinished);

  master.CrashAndReload();

  EXPECT_EQ(worker.Repeat()->answer, Answer::kFinished);
}

TEST(OurDoorCalls, HandAHeldCallOverToItsRepetition) {
  CoreFixture master;
  master.Register(Shards(1));
  OurClient holder(master, Worker(0));
  OurClient waiting(master, Worker(1));
  const LeasedShard shard = holder.Lease();
  const Later<ExchangeReply> first = waiting.Ask();

  const Later<ExchangeReply> second = waiting.Repeat();

  ASSERT_TRUE(first.answered());
  EXPECT_EQ(first->answer, Answer::kRetry);
  EXPECT_FALSE(second.answered());
  EXPECT_EQ(master.core().dispatcher().waiting(), 1u);
  holder.Report(shard, Outcome::kGivenBack);
  ASSERT_TRUE(second.answered());
  EXPECT_EQ(second->shards.front().key, shard.key);
}

TEST(OurDoorCalls, KeepTheReportsOfACallWhoseLeasePartWasHeld) {
  CoreFixture master;
  master.Register(Shards(2));
  OurClient holder(master, Worker(0));
  OurClient waiting(master, Worker(1));
  holder.Lease();
  holder.Acknowledge();
  const LeasedShard done = waiting.Lease();
  const Later<ExchangeReply> held = waiting.Exchange({{.lease = done.lease}}, 1);
  ASSERT_FALSE(held.answered());
  ASSERT_EQ(master.Data().records_done, 10);

  master.CrashAndReload();
  const Later<ExchangeReply> again = waiting.Repeat();
  EXPECT_FALSE(again.answered());
  holder.Rejoin({});

  ASSERT_TRUE(again.answered());
  EXPECT_EQ(again->answer, Answer::kShards);
  EXPECT_EQ(again->verdicts, (std::vector<Verdict>{Verdict::kAccepted}));
  EXPECT_EQ(master.Data().records_done, 10);
}

TEST(OurDoorCalls, AnswerWaitAtTheirDeadlineAndTheNextOneAnew) {
  CoreFixture master;
  master.Register(Shards(1));
  OurClient holder(master, Worker(0));
  OurClient waiting(master, Worker(1));
  holder.Lease();
  const Later<ExchangeReply> held = waiting.Exchange({}, 1, seconds(5));

  master.LetPass(seconds(4));
  EXPECT_FALSE(held.answered());
  master.LetPass(seconds(1));

  ASSERT_TRUE(held.answered());
  EXPECT_EQ(held->answer, Answer::kWait);
  EXPECT_FALSE(waiting.Ask().answered());
}

TEST(OurDoorCalls, SayThatADatasetIsUnknown) {
  CoreFixture master;
  OurClient worker(master, Worker(0));

  EXPECT_EQ(worker.Ask()->answer, Answer::kUnknownDataset);
}

TEST(OurDoorCalls, RefuseANumberWhoseAnswerArrived) {
  CoreFixture master;
  master.Register(Shards(5));
  OurClient worker(master, Worker(0));
  worker.Lease();
  worker.Lease();

  const Later<ExchangeReply> old = master.Exchange(
      {.incarnation = worker.incarnation(), .number = 1, .dataset = kData, .lease_at_most = 1});

  EXPECT_EQ(old.result().status().code(), Code::kInvalidArgument);
  EXPECT_EQ(master.Data().leases, 2);
}

TEST(OurDoorCalls, TurnIntoWaitWhenARepeatedGrantWasVoidedByAReset) {
  CoreFixture master;
  master.Register(Shards(2));
  OurClient worker(master, Worker(0));
  worker.Lease();
  ASSERT_TRUE(master.core().Reset(kData).ok());

  EXPECT_EQ(worker.Repeat()->answer, Answer::kWait);
}

TEST(OurDoorCalls, GrantNothingToACallThatWasAbandoned) {
  CoreFixture master;
  master.Register(Shards(1));
  OurClient holder(master, Worker(0));
  OurClient gone(master, Worker(1));
  const LeasedShard shard = holder.Lease();
  const Later<ExchangeReply> held = gone.Ask();
  const uint64_t call_of_it = master.NextCall() - 1;

  master.core().our_door().Abandon(call_of_it);
  holder.Report(shard, Outcome::kGivenBack);

  EXPECT_FALSE(held.answered());
  EXPECT_EQ(master.Data().leases, 0);
}

TEST(OurDoorCalls, GrantNoMoreThanTheMostShardsACallMayHave) {
  CoreFixture master;
  master.Register(Shards(2000));
  OurClient worker(master, Worker(0));

  EXPECT_EQ(worker.LeaseMany(1'000'000).size(), OurDoor::kMostShardsPerCall);
}

// Who belongs to the job.

TEST(OurDoorMembers, GetANewIncarnationEachThatIsNeverUsedAgain) {
  CoreFixture master;
  OurClient first(master, Worker(0));
  master.core().our_door().Leave(first.incarnation(), Later<Done>().reply());
  master.Commit();
  master.CrashAndReload();

  OurClient second(master, Worker(0));

  EXPECT_GT(second.incarnation(), first.incarnation());
}

TEST(OurDoorMembers, KeepTheLeasesThatARejoinListsAndLoseTheOthers) {
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
  EXPECT_EQ(worker.Report(held[1]), Verdict::kAccepted);
  EXPECT_EQ(worker.Report(held[0]), Verdict::kLost);
  EXPECT_EQ(other.LeaseMany(3).size(), 2u);
}

TEST(OurDoorMembers, KeepTheLeasesOfAnAnswerThatIsStillOnItsWay) {
  CoreFixture master;
  master.Register(Shards(2));
  OurClient worker(master, Worker(0));
  const LeasedShard unseen = worker.Lease();  // the connection broke before the answer

  worker.Rejoin({});
  const Later<ExchangeReply> again = worker.Repeat();

  EXPECT_EQ(LeasesIn(*again), (std::vector<LeaseId>{unseen.lease}));
  EXPECT_EQ(worker.Report(unseen), Verdict::kAccepted);
}

TEST(OurDoorMembers, AreRefusedOnceTheyWereGivenUp) {
  CoreFixture master;
  master.Register(Shards(2));
  OurClient worker(master, Worker(0));
  worker.Lease();
  master.core().our_door().Leave(worker.incarnation(), Later<Done>().reply());
  master.Commit();

  EXPECT_EQ(master.Beat(worker.incarnation()).code(), Code::kAborted);
  EXPECT_EQ(worker.Ask().result().status().code(), Code::kAborted);
  EXPECT_EQ(
      master.core().our_door().Watch(worker.incarnation(), 1, [](const Membership&) {}).code(),
      Code::kAborted);
  const Incarnation old = worker.incarnation();
  EXPECT_TRUE(worker.Rejoin({}).empty());
  EXPECT_GT(worker.incarnation(), old);
}

TEST(OurDoorMembers, CannotJoinAsAReplicaThatHasEnded) {
  CoreFixture master(WorkersOnly(1));
  master.StartReplicas();
  master.Exit(NameOf(Worker(0)), Killed());

  const auto joined = master.TryJoin({.replica = Worker(0)});

  EXPECT_EQ(joined.status().code(), Code::kFailedPrecondition);
  EXPECT_NE(joined.status().message().find(NameOf(Worker(0))), std::string::npos);
}

TEST(OurDoorMembers, LoseTheirLeasesAfterThirtySilentSeconds) {
  CoreFixture master;
  master.Register(Shards(1));
  OurClient silent(master, Worker(0));
  OurClient waiting(master, Worker(1));
  silent.Lease();
  const Later<ExchangeReply> held = waiting.Ask();
  master.FallSilent(silent.incarnation());

  master.LetPass(OurDoor::kSilence);
  EXPECT_FALSE(held.answered());
  master.LetPass(milliseconds(500));

  ASSERT_TRUE(held.answered());
  EXPECT_EQ(held->answer, Answer::kShards);
  EXPECT_EQ(master.Beat(silent.incarnation()).code(), Code::kAborted);
}

TEST(OurDoorMembers, LiveOnAsLongAsTheyBeat) {
  CoreFixture master;
  OurClient worker(master, Worker(0));

  master.LetPass(std::chrono::minutes(10));

  EXPECT_EQ(master.Beat(worker.incarnation()), Ok());
}

TEST(OurDoorMembers, LoseTheirLeasesSoonAfterTheirConnection) {
  CoreFixture master;
  master.Register(Shards(1));
  OurClient worker(master, Worker(0));
  worker.Lease();
  ASSERT_EQ(master.core().our_door().Watch(worker.incarnation(), 1, [](const Membership&) {}),
            Ok());
  master.FallSilent(worker.incarnation());

  master.core().our_door().Unwatch(worker.incarnation(), 1);
  master.LetPass(OurDoor::kRejoin);
  EXPECT_EQ(master.Data().leases, 1);
  master.LetPass(milliseconds(100));

  EXPECT_EQ(master.Data().leases, 0);
}

TEST(OurDoorMembers, HearOfOthersAfterTheCommit) {
  CoreFixture master(WorkersOnly(2));
  master.StartReplicas();
  OurClient worker(master, Worker(0));
  int64_t told = 0;
  ASSERT_EQ(
      master.core().our_door().Watch(
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

TEST(OurDoorMembers, LoseTheirLeasesSoonerIfTheyWereSilentBefore) {
  CoreFixture master;
  master.Register(Shards(1));
  OurClient worker(master, Worker(0));
  worker.Lease();
  OurDoor& door = master.core().our_door();
  ASSERT_EQ(door.Watch(worker.incarnation(), 1, [](const Membership&) {}), Ok());
  master.FallSilent(worker.incarnation());
  master.LetPass(seconds(3));  // what the kernel takes to break the connection

  door.Unwatch(worker.incarnation(), 1);
  master.LetPass(milliseconds(200));
  EXPECT_EQ(master.Data().leases, 1);
  master.LetPass(milliseconds(100));

  EXPECT_EQ(master.Data().leases, 0);
}

TEST(OurDoorMembers, KeepTheirLeasesWhenTheyReconnectInTime) {
  CoreFixture master;
  master.Register(Shards(1));
  OurClient worker(master, Worker(0));
  const LeasedShard shard = worker.Lease();
  OurDoor& door = master.core().our_door();
  ASSERT_EQ(door.Watch(worker.incarnation(), 1, [](const Membership&) {}), Ok());
  master.FallSilent(worker.incarnation());
  door.Unwatch(worker.incarnation(), 1);
  master.LetPass(milliseconds(1000));

  worker.Rejoin({shard.lease});
  ASSERT_EQ(door.Watch(worker.incarnation(), 2, [](const Membership&) {}), Ok());
  door.Unwatch(worker.incarnation(), 1);  // the old stream's end comes late
  master.LetPass(seconds(60));

  EXPECT_EQ(worker.Report(shard), Verdict::kAccepted);
}

TEST(OurDoorMembers, HaveTimeToComeBackToARestartedMaster) {
  CoreFixture master;
  master.Register(Shards(1));
  OurClient worker(master, Worker(0));
  const LeasedShard shard = worker.Lease();
  ASSERT_EQ(master.core().our_door().Watch(worker.incarnation(), 1, [](const Membership&) {}),
            Ok());
  master.FallSilent(worker.incarnation());

  master.CrashAndReload();
  master.LetPass(seconds(9));

  EXPECT_EQ(worker.Rejoin({shard.lease}), (std::vector<LeaseId>{shard.lease}));
}

TEST(OurDoorMembers, AreNotBlamedForAStallOfTheMaster) {
  CoreFixture master;
  master.Register(Shards(1));
  OurClient worker(master, Worker(0));
  const LeasedShard shard = worker.Lease();

  master.Stall(seconds(15));

  EXPECT_EQ(worker.Report(shard), Verdict::kAccepted);
}

TEST(OurDoorMembers, SeeEachChangeOfTheMembership) {
  CoreFixture master(WorkersOnly(2));
  master.StartReplicas();
  OurClient worker(master, Worker(0));
  std::vector<Membership> seen;
  ASSERT_EQ(master.core().our_door().Watch(worker.incarnation(), 1,
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

TEST(OurDoorSync, LetsABarrierGoOnceAllRunningReplicasOfTheRoleArrived) {
  CoreFixture master(WorkersOnly(2));
  master.StartReplicas();
  OurClient one(master, Worker(0));
  OurClient other(master, Worker(1));
  const Later<bool> first;
  const Later<bool> second;

  master.core().our_door().Arrive(one.incarnation(), "init", seconds(60), first.reply());
  master.Commit();
  EXPECT_FALSE(first.answered());
  master.core().our_door().Arrive(other.incarnation(), "init", seconds(60), second.reply());
  master.Commit();

  EXPECT_TRUE(*first);
  EXPECT_TRUE(*second);
}

TEST(OurDoorSync, FreesTheLockOfAMemberThatIsGivenUp) {
  CoreFixture master;
  OurClient holder(master, Worker(0));
  OurClient next(master, Worker(1));
  const Later<bool> had;
  const Later<bool> gets;
  master.core().our_door().AcquireLock(holder.incarnation(), "save", seconds(1), had.reply());
  master.core().our_door().AcquireLock(next.incarnation(), "save", seconds(60), gets.reply());
  master.Commit();
  ASSERT_TRUE(*had);
  ASSERT_FALSE(gets.answered());

  master.FallSilent(holder.incarnation());
  master.LetPass(OurDoor::kSilence + seconds(1));

  ASSERT_TRUE(gets.answered());
  EXPECT_TRUE(*gets);
}

TEST(OurDoorSync, RefusesStrangers) {
  CoreFixture master;
  const Incarnation stranger(99);
  const Later<bool> arrive;
  const Later<bool> acquire;
  const Later<bool> release;

  master.core().our_door().Arrive(stranger, "init", seconds(1), arrive.reply());
  master.core().our_door().AcquireLock(stranger, "save", seconds(1), acquire.reply());
  master.core().our_door().ReleaseLock(stranger, "save", release.reply());
  master.Commit();

  EXPECT_EQ(arrive.result().status().code(), Code::kAborted);
  EXPECT_EQ(acquire.result().status().code(), Code::kAborted);
  EXPECT_EQ(release.result().status().code(), Code::kAborted);
}

}  // namespace
}  // namespace edl::master
