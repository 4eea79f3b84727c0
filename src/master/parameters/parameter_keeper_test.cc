#include "master/parameters/parameter_keeper.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/checkpoint_folder.h"
#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

job::JobSpec WithServers(int servers) {
  job::JobSpec spec = WorkersOnly(1);
  spec.own_ps = true;
  spec.num_ps = servers;
  spec.compat_api = false;
  spec.recovery_checkpoint_secs = 30;
  spec.ps_silence_secs = 0;  // they answer when the test says so
  return spec;
}

ReplicaRef Server(int64_t id) { return {job::Role::kPs, id}; }

// A job with parameter servers that do what they are asked when the test says so.
class Servers : public testing::Test {
 protected:
  explicit Servers(int servers = 2) : master_(WithServers(servers)) { master_.StartReplicas(); }

  const ParameterKeeper& keeper() { return master_.core().parameters(); }

  // Commands of one kind that came since; the others are kept.
  template <typename Command>
  std::vector<Command> Take() {
    master_.Tick();
    for (ServerCommand& command : master_.core().TakeServerCommands()) {
      commands_.push_back(std::move(command));
    }
    std::vector<Command> taken;
    std::erase_if(commands_, [&](const ServerCommand& command) {
      const auto* found = std::get_if<Command>(&command);
      if (found != nullptr) taken.push_back(*found);
      return found != nullptr;
    });
    return taken;
  }

  // Every server that is asked says who it is: its index and how often it lived.
  void AnswerProbes() {
    for (const ProbeServer& probe : Take<ProbeServer>()) {
      master_.core().OnProbed(probe.number, ProbeReply{LifeOf(probe.index), 1});
    }
    master_.Tick();
  }
  PsIncarnation LifeOf(int index) {
    return PsIncarnation(uint64_t{100} * (static_cast<uint64_t>(index) + 1) + lives_[index]);
  }

  RestoreServers TakeRestore() {
    AnswerProbes();
    const auto restores = Take<RestoreServers>();
    EXPECT_THAT(restores, SizeIs(1));
    return restores.empty() ? RestoreServers{} : restores.front();
  }
  void Restored(const RestoreServers& restore, const Status& status = Ok()) {
    master_.core().OnRestored(restore.number, status);
    master_.Tick();
  }
  // To the point where workers are served.
  void Bring() { Restored(TakeRestore()); }
  // A worker waits at a server for the first checkpoint.
  void LetOpen() {
    State({.index = 0, .incarnation = LifeOf(0), .opens_waiting = 1});
    master_.Tick();
  }
  void State(const job::ServerView& view) { master_.core().OnServerState(view); }
  SaveAll TakeSave() {
    const auto saves = Take<SaveAll>();
    EXPECT_THAT(saves, SizeIs(1));
    return saves.empty() ? SaveAll{} : saves.front();
  }
  void Saved(const SaveAll& save, const Status& status = Ok()) {
    master_.core().OnSaved(save.number, status);
    master_.Tick();
  }
  // Bring, and the first checkpoint, after which workers push.
  void BringAndSave() {
    Bring();
    LetOpen();
    Saved(TakeSave());
  }
  // The server's process dies, and its successor runs.
  void Lose(int index, int64_t id, int64_t next_id) {
    master_.Exit(NameOf(Server(id)), Killed());
    ++lives_[index];
    master_.LetPass(milliseconds(100));
    master_.Running(NameOf(Server(next_id)));
  }
  ReportVerdict Report(OurClient& worker, const LeasedShard& shard, PsEpoch ps_epoch) {
    return worker.ReportAndLease({{.lease = shard.lease, .ps_epoch = ps_epoch}}, 0)
        ->verdicts.front();
  }

  CoreFixture master_;
  std::map<int, uint64_t> lives_;
  std::vector<ServerCommand> commands_;
};

TEST_F(Servers, BeginEmptyAndServeOnceAllAreThere) {
  const RestoreServers restore = TakeRestore();
  EXPECT_EQ(restore.checkpoint, "");
  EXPECT_EQ(restore.ps_epoch, PsEpoch(1));
  EXPECT_THAT(restore.servers, SizeIs(2));
  EXPECT_THAT(Take<ServeAll>(), IsEmpty());

  Restored(restore);

  const auto serves = Take<ServeAll>();
  ASSERT_THAT(serves, SizeIs(1));
  EXPECT_EQ(serves[0].ps_epoch, PsEpoch(1));
  EXPECT_THAT(serves[0].incarnations, ElementsAre(LifeOf(0), LifeOf(1)));
  EXPECT_FALSE(serves[0].may_push) << "there is no checkpoint yet";
}

TEST_F(Servers, AcceptNoPushesBeforeTheFirstCheckpoint) {
  Bring();
  EXPECT_THAT(Take<SaveAll>(), IsEmpty()) << "nobody has declared anything yet";
  Take<ServeAll>();

  LetOpen();
  const SaveAll save = TakeSave();
  Saved(save);

  const auto serves = Take<ServeAll>();
  ASSERT_THAT(serves, SizeIs(1));
  EXPECT_TRUE(serves[0].may_push);
}

TEST_F(Servers, AreSavedNowAndThenWhileSomethingHappens) {
  BringAndSave();
  master_.Register(Shards(4));
  OurClient worker(master_, Worker(0));
  master_.LetPass(seconds(31));
  EXPECT_THAT(Take<SaveAll>(), IsEmpty()) << "nothing was leased or done since";

  const LeasedShard shard = worker.Lease();
  Report(worker, shard, PsEpoch(1));
  master_.LetPass(seconds(31));
  const SaveAll save = TakeSave();
  EXPECT_EQ(save.version, 2);
  EXPECT_TRUE(save.covered.Contains(shard.dataset_id, 1, 0, shard.key.ordinal));
}

TEST_F(Servers, HaveWhatACheckpointLacksTrainedAgainAndCountedOnce) {
  BringAndSave();
  master_.Register(Shards(4));
  OurClient worker(master_, Worker(0));
  const LeasedShard first = worker.Lease();
  EXPECT_EQ(Report(worker, first, PsEpoch(1)), ReportVerdict::kAccepted);
  master_.LetPass(seconds(31));
  Saved(TakeSave());
  const LeasedShard second = worker.Lease();
  EXPECT_EQ(Report(worker, second, PsEpoch(1)), ReportVerdict::kAccepted);
  ASSERT_EQ(master_.core().dispatcher().counters().version, 4);

  Lose(1, 1, 2);
  const RestoreServers restore = TakeRestore();

  ASSERT_THAT(restore.servers, SizeIs(1)) << "the other one has all it had";
  EXPECT_EQ(restore.servers[0].index, 1);
  EXPECT_EQ(restore.ps_epoch, PsEpoch(2));
  EXPECT_EQ(restore.checkpoint, keeper().checkpoints().back().name);
  Restored(restore);
  const LeasedShard again = worker.Lease();
  EXPECT_EQ(again.key, second.key) << "the first is in the checkpoint";
  EXPECT_GT(again.lease, second.lease);
  EXPECT_EQ(Report(worker, again, PsEpoch(2)), ReportVerdict::kAccepted);
  EXPECT_EQ(master_.core().dispatcher().counters().version, 4) << "it never counts twice";
  EXPECT_EQ(master_.Data().records_done, 20);
}

TEST_F(Servers, AnswerAReportOfAnOlderEpochWithReopen) {
  BringAndSave();
  master_.Register(Shards(2));
  OurClient worker(master_, Worker(0));
  const LeasedShard shard = worker.Lease();
  Lose(0, 0, 2);
  Bring();

  EXPECT_EQ(Report(worker, shard, PsEpoch(1)), ReportVerdict::kReopen);
  EXPECT_EQ(master_.Data().records_done, 0);
  EXPECT_EQ(Report(worker, shard, PsEpoch(2)), ReportVerdict::kAccepted)
      << "the lease was still its own";
}

// A worker that is connected to a server that was given up learns that there is a newer epoch.
TEST_F(Servers, TellTheirEpochWithEveryAnswer) {
  BringAndSave();
  master_.Register(Shards(2));
  OurClient worker(master_, Worker(0));
  const auto leased = worker.Ask();
  EXPECT_EQ(leased->ps_epoch, PsEpoch(1));
  EXPECT_EQ(worker.ReportAndLease({}, 0)->ps_epoch, PsEpoch(1));
  Lose(0, 0, 2);
  Bring();

  const auto reopened =
      worker.ReportAndLease({{.lease = leased->shards[0].lease, .ps_epoch = PsEpoch(1)}}, 0);

  EXPECT_THAT(reopened->verdicts, ElementsAre(ReportVerdict::kReopen));
  EXPECT_EQ(reopened->ps_epoch, PsEpoch(2));
  EXPECT_EQ(worker.Repeat()->ps_epoch, PsEpoch(2));
}

TEST_F(Servers, AcceptReportsOfAProgramThatPushesNothing) {
  BringAndSave();
  master_.Register(Shards(1));
  OurClient worker(master_, Worker(0));

  EXPECT_EQ(Report(worker, worker.Lease(), PsEpoch()), ReportVerdict::kAccepted);
}

TEST_F(Servers, DoNotDelayWorkersThatMustReopen) {
  BringAndSave();
  master_.Register(Shards(1));
  OurClient worker(master_, Worker(0));
  const LeasedShard shard = worker.Lease();
  Lose(0, 0, 2);
  Bring();

  const auto answer = worker.ReportAndLease({{.lease = shard.lease, .ps_epoch = PsEpoch(1)}});

  ASSERT_TRUE(answer.answered()) << "nothing else is there to lease";
  EXPECT_EQ(answer->answer, LeaseAnswer::kWait);
  EXPECT_THAT(answer->verdicts, ElementsAre(ReportVerdict::kReopen));
}

TEST_F(Servers, VoidASaveDuringWhichOneWasRestored) {
  BringAndSave();
  master_.Register(Shards(4));
  OurClient worker(master_, Worker(0));
  worker.Lease();
  master_.LetPass(seconds(31));
  const SaveAll save = TakeSave();
  Lose(1, 1, 2);
  Bring();

  Saved(save);

  EXPECT_THAT(keeper().checkpoints(), SizeIs(1));
  const auto drops = Take<DropCheckpoint>();
  ASSERT_THAT(drops, SizeIs(1));
  EXPECT_EQ(drops[0].name, save.name);
}

TEST_F(Servers, FallBackToTheCheckpointBeforeADamagedOne) {
  BringAndSave();
  master_.Register(Shards(4));
  OurClient worker(master_, Worker(0));
  Report(worker, worker.Lease(), PsEpoch(1));
  master_.LetPass(seconds(31));
  Saved(TakeSave());
  const std::string older = keeper().checkpoints().front().name;
  Lose(0, 0, 2);

  Restored(TakeRestore(), DataLoss("part-0 is damaged"));
  const auto again = Take<RestoreServers>();

  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again[0].checkpoint, older);
  Restored(again[0]);
  EXPECT_EQ(worker.Lease().key.ordinal, 0U) << "the older one lacks the shard";
}

TEST_F(Servers, FailTheJobWhenNoCheckpointIsLeft) {
  BringAndSave();
  Lose(0, 0, 2);

  Restored(TakeRestore(), DataLoss("part-0 is damaged"));

  EXPECT_THAT(master_.core().View().reason, HasSubstr("part-0 is damaged"));
}

TEST_F(Servers, TellTheEndOnlyWhenAllIsDurable) {
  BringAndSave();
  master_.Register(Shards(1));
  OurClient worker(master_, Worker(0));
  Report(worker, worker.Lease(), PsEpoch(1));
  const auto asked = worker.Ask();
  master_.Tick();
  EXPECT_FALSE(asked.answered());

  Saved(TakeSave());

  ASSERT_TRUE(asked.answered());
  EXPECT_EQ(asked->answer, LeaseAnswer::kFinished);
}

TEST_F(Servers, GoOnAfterAMasterThatDied) {
  BringAndSave();
  master_.Register(Shards(2));
  Take<ServeAll>();

  master_.CrashAndReload();
  master_.Running(NameOf(Server(0)));
  master_.Running(NameOf(Server(1)));
  AnswerProbes();

  EXPECT_THAT(Take<RestoreServers>(), IsEmpty()) << "they have all they had";
  const auto serves = Take<ServeAll>();
  ASSERT_THAT(serves, SizeIs(1));
  EXPECT_EQ(serves[0].ps_epoch, PsEpoch(1));
  EXPECT_TRUE(serves[0].may_push);
}

TEST_F(Servers, AreRestoredAgainWhenTheMasterDiedMeanwhile) {
  BringAndSave();
  Lose(0, 0, 2);
  const RestoreServers first = TakeRestore();
  master_.Commit();

  master_.CrashAndReload();
  master_.Running(NameOf(Server(2)));
  master_.Running(NameOf(Server(1)));
  const RestoreServers second = TakeRestore();

  EXPECT_GT(second.ps_epoch, first.ps_epoch) << "so that the first, if it comes late, is refused";
  ASSERT_THAT(second.servers, SizeIs(1));
  EXPECT_EQ(second.servers[0].index, 0);
}

TEST_F(Servers, AreDistinguishedFromTheirPredecessors) {
  BringAndSave();
  master_.Exit(NameOf(Server(0)), Killed());
  master_.LetPass(milliseconds(100));
  master_.Running(NameOf(Server(2)));

  AnswerProbes();  // by the dead one, whose life has not changed
  EXPECT_THAT(Take<RestoreServers>(), IsEmpty());

  ++lives_[0];
  master_.LetPass(milliseconds(200));
  EXPECT_THAT(TakeRestore().servers, SizeIs(1));
}

TEST_F(Servers, KeepTheNewestTwoAndTheUsersOwn) {
  master_.spec().checkpoint_steps = 2;
  master_.spec().keep_checkpoint_max = 1;
  BringAndSave();
  master_.Register(Shards(5));
  OurClient worker(master_, Worker(0));
  std::vector<std::string> dropped;
  for (int i = 0; i < 4; ++i) {
    Report(worker, worker.Lease(), PsEpoch(1));
    Saved(TakeSave());
    for (const DropCheckpoint& drop : Take<DropCheckpoint>()) dropped.push_back(drop.name);
  }
  EXPECT_THAT(keeper().checkpoints(), SizeIs(2));
  const auto name = [&](int64_t version, int64_t save) {
    return checkpoint::CheckpointName{version, keeper().ledger_id(), save}.ToText();
  };
  EXPECT_THAT(dropped, ElementsAre(name(0, 1), name(2, 2), name(4, 3)));
}

TEST_F(Servers, ThatAreLostWithoutCheckpointsFailTheJob) {
  master_.spec().recovery_checkpoint_secs = 0;
  Bring();
  EXPECT_TRUE(Take<ServeAll>().front().may_push);

  Lose(0, 0, 2);
  AnswerProbes();

  EXPECT_THAT(master_.core().View().reason, HasSubstr("--recovery_checkpoint_secs=0"));
}

}  // namespace
}  // namespace edl::master
