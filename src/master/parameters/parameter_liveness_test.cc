#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/checkpoint_folder.h"
#include "master/parameters/parameter_keeper.h"
#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr PsIncarnation kLife(100);

job::JobSpec WithOneServer() {
  job::JobSpec spec = WorkersOnly(1);
  spec.own_ps = true;
  spec.num_ps = 1;
  spec.recovery_checkpoint_secs = 30;
  spec.ps_silence_secs = 15;
  spec.default_ps_lanes = 2;
  return spec;
}

ReplicaRef Server(int64_t id) { return {job::Role::kPs, id}; }

// A job with one parameter server that answers, and does what it is asked, when the test says so.
class ParameterLiveness : public testing::Test {
 protected:
  ParameterLiveness() : master_(WithOneServer()) { master_.StartReplicas(); }

  const ParameterKeeper& keeper() { return master_.core().parameters(); }
  std::string Reason() { return keeper().View(master_.core().now()).at(0).reason; }

  // Commands of a kind that came since; those of other kinds are kept.
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
  void Probed(PsIncarnation life, uint32_t lanes = 2) {
    for (const ProbeServer& probe : Take<ProbeServer>()) {
      master_.core().OnProbed(probe.number, ProbeReply{life, lanes});
    }
  }
  void Restored(const Status& status = Ok()) {
    const auto restores = Take<RestoreServers>();
    ASSERT_THAT(restores, SizeIs(1));
    master_.core().OnRestored(restores[0].number, status);
    master_.Tick();
  }
  void Saved(const Status& status = Ok()) {
    const auto saves = Take<SaveAll>();
    ASSERT_THAT(saves, SizeIs(1));
    master_.core().OnSaved(saves[0].number, status);
    master_.Tick();
  }
  void Answer(PsIncarnation life = kLife) {
    master_.core().OnServerState({.index = 0, .incarnation = life, .opens_waiting = 1});
  }
  // To the point where workers push.
  void Bring(PsIncarnation life = kLife) {
    Probed(life);
    Restored();
    Answer(life);
    if (keeper().checkpoints().empty()) Saved();
    master_.TakeStops();
  }
  void Lose(int64_t id) {
    master_.Exit(NameOf(Server(id)), Killed());
    master_.LetPass(milliseconds(100));
    master_.Running(NameOf(Server(id + 1)));
  }
  // Two checkpoints, of which the newer one has what the older one lacks.
  void SaveTwice() {
    Bring();
    master_.Register(Shards(4));
    OurClient worker(master_, Worker(0));
    worker.ReportAndLease({{.lease = worker.Lease().lease, .ps_epoch = PsEpoch(1)}}, 0);
    for (int i = 0; i < 31; ++i) {
      Answer();
      master_.LetPass(seconds(1));
    }
    Saved();
    ASSERT_THAT(keeper().checkpoints(), SizeIs(2));
  }

  CoreFixture master_;
  std::vector<ServerCommand> commands_;
};

// A process that was stopped, and a machine that vanished, close no connection.
TEST_F(ParameterLiveness, AServerThatDoesNotAnswerIsShownAndThenReplaced) {
  Bring();
  EXPECT_EQ(Reason(), "");
  master_.LetPass(seconds(10));
  EXPECT_EQ(Reason(), "no answer for 10 s");
  EXPECT_THAT(master_.TakeStops(), IsEmpty());

  master_.LetPass(seconds(6));

  EXPECT_THAT(master_.TakeStops(), ElementsAre(NameOf(Server(0))));
  master_.Exit(NameOf(Server(0)), Killed());
  master_.LetPass(seconds(1));
  const auto launches = master_.TakeLaunches();
  ASSERT_FALSE(launches.empty());
  EXPECT_EQ(launches.back().name, NameOf(Server(1)));
  EXPECT_THAT(master_.core().keeper().Find(NameOf(Server(0)))->row.reason,
              HasSubstr("no answer for 15 s"));
}

TEST_F(ParameterLiveness, AServerThatIsStillThereIsStoppedAgain) {
  Bring();
  master_.LetPass(seconds(16));
  EXPECT_THAT(master_.TakeStops(), SizeIs(1));
  master_.LetPass(seconds(16));
  EXPECT_THAT(master_.TakeStops(), SizeIs(1)) << "the first one may not have arrived";
}

TEST_F(ParameterLiveness, AServerThatAnswersStays) {
  Bring();
  for (int i = 0; i < 60; ++i) {
    Answer();
    master_.LetPass(seconds(1));
  }
  EXPECT_THAT(master_.TakeStops(), IsEmpty());
  EXPECT_EQ(Reason(), "");
}

// Its process answers and its lanes do not, so workers would wait forever.
TEST_F(ParameterLiveness, AServerWhoseLanesHangIsReplaced) {
  Bring();
  for (int i = 0; i < 17; ++i) {
    master_.core().OnServerAlive(0, kLife);
    master_.LetPass(seconds(1));
  }
  EXPECT_THAT(master_.TakeStops(), SizeIs(1));
}

// Lanes that read their parameters have no time to say how they are.
TEST_F(ParameterLiveness, AServerThatIsRestoredForLongStays) {
  Bring();
  Lose(0);
  Probed(kLife.Next());
  EXPECT_THAT(Take<RestoreServers>(), SizeIs(1));
  for (int i = 0; i < 120; ++i) {
    master_.core().OnServerAlive(0, kLife.Next());
    master_.LetPass(seconds(1));
  }
  EXPECT_THAT(master_.TakeStops(), IsEmpty());
  EXPECT_THAT(Reason(), HasSubstr("restoring version-"));
}

TEST_F(ParameterLiveness, AServerThatNeverAnsweredGetsAMinute) {
  master_.LetPass(seconds(50));
  EXPECT_THAT(master_.TakeStops(), IsEmpty());
  master_.LetPass(seconds(12));
  EXPECT_THAT(master_.TakeStops(), SizeIs(1));
}

// The answers of the dead are not those of the successor that never came up.
TEST_F(ParameterLiveness, AnAnswerOfThePredecessorDoesNotCount) {
  Bring();
  Lose(0);
  for (int i = 0; i < 62; ++i) {
    Probed(kLife);
    master_.LetPass(seconds(1));
  }
  EXPECT_THAT(master_.TakeStops(), ElementsAre(NameOf(Server(1))));
}

TEST_F(ParameterLiveness, ASaveIsCancelledWhenAServerIsLost) {
  Bring();
  master_.Register(Shards(4));
  OurClient worker(master_, Worker(0));
  worker.Lease();
  for (int i = 0; i < 31; ++i) {
    Answer();
    master_.LetPass(seconds(1));
  }
  const auto saves = Take<SaveAll>();
  ASSERT_THAT(saves, SizeIs(1));
  EXPECT_THAT(Take<CancelSave>(), IsEmpty());

  Lose(0);

  const auto cancels = Take<CancelSave>();
  ASSERT_FALSE(cancels.empty());
  EXPECT_EQ(cancels[0].number, saves[0].number);
}

// A node with more cores must not get a server with more lanes: buckets would be elsewhere.
TEST_F(ParameterLiveness, TheNumberOfLanesIsDecidedOnce) {
  const auto launches = master_.TakeLaunches();
  for (const LaunchCommand& launch : launches) {
    if (launch.replica.role != job::Role::kPs) continue;
    EXPECT_EQ(launch.ps_lanes, 2);
  }
  master_.spec().default_ps_lanes = 16;
  master_.CrashAndReload();
  EXPECT_EQ(keeper().lanes(), 2);
  master_.spec().ps_lanes = 4;  // --resume --ps_lanes=4
  master_.CrashAndReload();
  EXPECT_EQ(keeper().lanes(), 4);
}

TEST_F(ParameterLiveness, AServerWithOtherLanesIsInError) {
  Probed(kLife, 16);
  EXPECT_THAT(Take<RestoreServers>(), IsEmpty());
  master_.LetPass(seconds(5));
  EXPECT_THAT(Reason(), HasSubstr("it has 16 lanes, and this job's servers have 2"));
}

// A mount in trouble, permissions, no memory: none of it is the checkpoint's fault.
TEST_F(ParameterLiveness, ARestoreThatCannotReadIsTriedAgainAndKeepsTheCheckpoint) {
  SaveTwice();
  const std::string newest = keeper().checkpoints().back().name;
  Lose(0);
  for (int i = 0; i < 5; ++i) {
    Probed(kLife.Next());
    Restored({Code::kUnknown, "reading part-0: Input/output error"});
    EXPECT_EQ(keeper().checkpoints().back().name, newest);
    EXPECT_THAT(Reason(), HasSubstr("Input/output error"));
    master_.LetPass(seconds(6));
  }
  Probed(kLife.Next());
  Restored();
  EXPECT_EQ(master_.state(), job::JobState::kRunning);
}

TEST_F(ParameterLiveness, ARestoreThatNeverCanFailsTheJobAndKeepsTheCheckpoint) {
  SaveTwice();
  const std::string newest = keeper().checkpoints().back().name;
  Lose(0);
  for (int i = 0; i < 30 && master_.state() == job::JobState::kRunning; ++i) {
    Probed(kLife.Next());
    Restored({Code::kPermissionDenied, "opening part-0: Permission denied"});
    master_.LetPass(seconds(6));
  }
  EXPECT_THAT(master_.core().View().reason, HasSubstr("Permission denied"));
  EXPECT_THAT(master_.core().View().reason, HasSubstr("--resume"));
  EXPECT_EQ(keeper().checkpoints().back().name, newest);
}

TEST_F(ParameterLiveness, ADamagedCheckpointIsMarkedAndNotForgotten) {
  SaveTwice();
  const std::string older = keeper().checkpoints().front().name;
  const std::string newest = keeper().checkpoints().back().name;
  Lose(0);
  Probed(kLife.Next());
  Restored(DataLoss("part-0 is damaged at 7"));
  const auto again = Take<RestoreServers>();
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again[0].checkpoint, older);
  master_.Commit();

  master_.CrashAndReload();

  ASSERT_THAT(keeper().bad_checkpoints(), SizeIs(1));
  EXPECT_EQ(keeper().bad_checkpoints()[0].name, newest);
  EXPECT_THAT(keeper().bad_checkpoints()[0].why, HasSubstr("damaged at 7"));
  commands_.clear();
  const auto collects = Take<CollectOrphans>();
  ASSERT_THAT(collects, SizeIs(1));
  EXPECT_THAT(collects[0].keep, ElementsAre(older, newest));
}

TEST_F(ParameterLiveness, WhatIsLeftOfSavesIsCollectedAtTheStartAndAfterEachSave) {
  Bring();
  auto collects = Take<CollectOrphans>();
  ASSERT_THAT(collects, SizeIs(2));
  EXPECT_EQ(collects[0].ledger, keeper().ledger_id());
  EXPECT_EQ(collects[0].below, 1);
  EXPECT_EQ(collects[1].below, 2);
  EXPECT_THAT(collects[1].keep, ElementsAre(keeper().checkpoints().back().name));
}

}  // namespace
}  // namespace edl::master
