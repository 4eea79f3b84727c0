#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "master/parameters/parameter_keeper.h"
#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

using job::JobState;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

job::JobSpec WithOneServer() {
  job::JobSpec spec = WorkersOnly(1);
  spec.own_ps = true;
  spec.num_ps = 1;
  spec.recovery_checkpoint_secs = 30;
  spec.ps_silence_secs = 0;  // they answer when the test says so
  return spec;
}

ReplicaRef Server(int64_t id) { return {job::Role::kPs, id}; }

// What the simulation found, step by step: a job with one parameter server, which does what it is
// asked when the test says so.
class ParameterLosses : public testing::Test {
 protected:
  ParameterLosses() : master_(WithOneServer()) { master_.StartReplicas(); }

  const ParameterKeeper& keeper() { return master_.core().parameters(); }

  // The last command of a kind; those of other kinds are forgotten.
  template <typename Command>
  Command Take() {
    master_.LetPass(milliseconds(500));
    std::optional<Command> last;
    for (const ServerCommand& command : master_.core().TakeServerCommands()) {
      if (const auto* found = std::get_if<Command>(&command)) last = *found;
    }
    CHECK(last.has_value(), "nothing of the kind was asked");
    return *last;
  }
  void Probed(PsIncarnation life) {
    master_.core().OnProbed(Take<ProbeServer>().number, ProbeReply{life, 1});
  }
  void Restored(const RestoreServers& restore, const Status& status = Ok()) {
    master_.core().OnRestored(restore.number, status);
    master_.Tick();
  }
  void Saved(const Status& status = Ok()) {
    master_.core().OnSaved(Take<SaveAll>().number, status);
    master_.Tick();
  }
  // To the point where workers push.
  void Bring(PsIncarnation life) {
    Probed(life);
    Restored(Take<RestoreServers>());
    master_.core().OnServerState({.index = 0, .incarnation = life, .opens_waiting = 1});
    Saved();
  }
  // All that there is to train.
  void TrainAll(OurClient& worker) {
    const LeasedShard shard = worker.Lease();
    worker.ReportAndLease({{.lease = shard.lease, .ps_epoch = keeper().ps_epoch()}}, 0);
  }
  void Lose(int64_t id) {
    master_.Exit(NameOf(Server(id)), Killed());
    master_.LetPass(seconds(1));
    master_.Running(NameOf(Server(id + 1)));
  }

  CoreFixture master_;
};

TEST_F(ParameterLosses, CannotHappenBeforeTheFirstCheckpointWhichWaitsForNothing) {
  Probed(PsIncarnation(100));
  Restored(Take<RestoreServers>());

  master_.core().OnServerState({.index = 0, .incarnation = PsIncarnation(100), .opens_waiting = 1});

  EXPECT_EQ(Take<SaveAll>().version, 0);
}

TEST_F(ParameterLosses, AreNoticedWhenADeadServerAnsweredForItsSuccessor) {
  Lose(0);
  Bring(PsIncarnation(
      100));  // nobody has heard of this life: it is that of server 0, which is not quite dead

  master_.core().OnServerState({.index = 0, .incarnation = PsIncarnation(101)});
  Probed(PsIncarnation(101));

  const RestoreServers restore = Take<RestoreServers>();
  ASSERT_THAT(restore.servers, SizeIs(1));
  EXPECT_EQ(restore.servers[0].incarnation, PsIncarnation(101));
  EXPECT_EQ(restore.ps_epoch, PsEpoch(2));
}

TEST_F(ParameterLosses, DoNotComeFromAStateReportThatIsLate) {
  Bring(PsIncarnation(100));

  master_.core().OnServerState({.index = 0, .incarnation = PsIncarnation(99)});
  Probed(PsIncarnation(100));

  EXPECT_EQ(Take<ServeAll>().ps_epoch, PsEpoch(1)) << "it has all it had";
}

TEST_F(ParameterLosses, AreNotDeclaredWhileAServerIsAwayAtTheEnd) {
  Bring(PsIncarnation(100));
  master_.Register(Shards(1));
  OurClient worker(master_, Worker(0));
  TrainAll(worker);

  for (int i = 0; i < 2 * ParameterKeeper::kMostFailedSaves; ++i) {
    Saved(Unavailable("nobody answers"));
    master_.LetPass(ParameterKeeper::kSaveAgain);
  }
  EXPECT_EQ(master_.state(), JobState::kRunning);

  Saved();
  EXPECT_EQ(worker.Ask()->answer, LeaseAnswer::kFinished);
}

TEST_F(ParameterLosses, AreDeclaredWhenTheDiskStaysFullAtTheEnd) {
  Bring(PsIncarnation(100));
  master_.Register(Shards(1));
  OurClient worker(master_, Worker(0));
  TrainAll(worker);

  for (int i = 0; i < ParameterKeeper::kMostFailedSaves; ++i) {
    Saved(ResourceExhausted("the disk is full"));
    master_.LetPass(ParameterKeeper::kSaveAgain);
  }

  EXPECT_THAT(master_.core().View().reason, HasSubstr("the disk is full"));
}

TEST_F(ParameterLosses, MakeAnEndingJobTrainAgain) {
  Bring(PsIncarnation(100));
  master_.Register(Shards(1));
  OurClient worker(master_, Worker(0));
  TrainAll(worker);
  Saved();
  ASSERT_EQ(worker.Ask()->answer, LeaseAnswer::kFinished);
  Lose(0);
  Probed(PsIncarnation(101));
  Restored(Take<RestoreServers>(), DataLoss("the newest checkpoint is damaged"));

  master_.Exit(NameOf(Worker(0)), Succeeded());
  Restored(Take<RestoreServers>());
  master_.LetPass(seconds(1));

  EXPECT_EQ(master_.state(), JobState::kRunning) << "the older checkpoint lacks the shard";
  master_.Running(NameOf(Worker(1)));
  OurClient next(master_, Worker(1));
  TrainAll(next);
  Saved();
  ASSERT_EQ(next.Ask()->answer, LeaseAnswer::kFinished);
  master_.Exit(NameOf(Worker(1)), Succeeded());
  master_.Exit(NameOf(Server(1)), Killed());
  EXPECT_EQ(master_.state(), JobState::kSucceeded);
}

TEST_F(ParameterLosses, AreAvoidedByASaveBeforeAServerLeaves) {
  Bring(PsIncarnation(100));
  EXPECT_THAT(Take<ServeAll>().released, ElementsAre(false));

  master_.core().OnServerState({.index = 0, .incarnation = PsIncarnation(100), .leaving = true});
  Saved();
  EXPECT_THAT(Take<ServeAll>().released, ElementsAre(true));

  Lose(0);
  Probed(PsIncarnation(101));
  Restored(Take<RestoreServers>());
  EXPECT_THAT(Take<ServeAll>().released, ElementsAre(false)) << "its successor is needed";
}

TEST_F(ParameterLosses, AreNotAvoidedByASaveThatBeganBeforeTheServerLeft) {
  Bring(PsIncarnation(100));
  master_.core().RequestSave();
  const SaveAll before = Take<SaveAll>();
  master_.core().OnServerState({.index = 0, .incarnation = PsIncarnation(100), .leaving = true});

  master_.core().OnSaved(before.number, Ok());
  EXPECT_THAT(Take<ServeAll>().released, ElementsAre(false));
}

TEST_F(ParameterLosses, AreIgnoredOnceTheJobEnds) {
  Bring(PsIncarnation(100));
  master_.core().Stop("its user had enough");
  EXPECT_THAT(Take<ServeAll>().released, ElementsAre(true));
}

TEST_F(ParameterLosses, KeepACheckpointThatIsNotDamaged) {
  Bring(PsIncarnation(100));
  master_.core().RequestSave();
  Saved();
  Lose(0);
  Probed(PsIncarnation(101));

  Restored(Take<RestoreServers>(), PermissionDenied("reading a part"));

  EXPECT_THAT(keeper().checkpoints(), SizeIs(2));
  EXPECT_EQ(master_.state(), JobState::kRunning) << "it is tried again";
  EXPECT_THAT(keeper().View(master_.core().now()).at(0).reason, HasSubstr("reading a part"));
}

TEST_F(ParameterLosses, GiveTheLeftoversARoundEachTime) {
  Bring(PsIncarnation(100));
  master_.Register(Shards(1));
  for (int round = 0; round < 3; ++round) {
    OurClient worker(master_, Worker(round));
    TrainAll(worker);
    Saved();
    ASSERT_EQ(worker.Ask()->answer, LeaseAnswer::kFinished);
    Lose(round);
    Probed(PsIncarnation(101 + static_cast<uint64_t>(round)));
    Restored(Take<RestoreServers>(), DataLoss("the newest checkpoint is damaged"));
    master_.Exit(NameOf(Worker(round)), Succeeded());
    Restored(Take<RestoreServers>());
    master_.LetPass(seconds(1));

    ASSERT_EQ(master_.state(), JobState::kRunning) << "round " << round;
    master_.Running(NameOf(Worker(round + 1)));
  }
}

}  // namespace
}  // namespace edl::master
