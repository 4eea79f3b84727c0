#include "ps_control/ps_controller_core.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/fake_clock.h"
#include "base/testing/status_matchers.h"
#include "base/text.h"
#include "ps_control/testing/fake_channel.h"
#include "wire/placement.h"

namespace edl::ps_control {
namespace {

namespace fs = std::filesystem;
using ps_client::LaneAnswer;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using wire::MessageType;

constexpr int kServers = 2;
constexpr uint32_t kLanes = 2;
constexpr const char* kName = "version-1.00000000000000aa.1";

// The incarnations of the servers.
constexpr job::PsIncarnation kFirst(70);
constexpr job::PsIncarnation kSecond(71);
job::PsIncarnation IncarnationOf(int server) { return server == 0 ? kFirst : kSecond; }

template <typename Message>
Message Read(const std::string& meta) {
  Message message;
  EXPECT_OK(wire::Decode(AsBytes(meta), message));
  return message;
}

// Records what is asked of storage; the test answers.
class FakeStore final : public CheckpointStore {
 public:
  void MakeFolder(const fs::path& folder, OnDone done) override {
    made.push_back(folder);
    on_made = std::move(done);
  }
  void WriteManifest(const fs::path& folder, const checkpoint::Manifest& manifest,
                     OnDone done) override {
    written.emplace_back(folder, manifest);
    on_written = std::move(done);
  }
  void ReadManifest(const fs::path& folder, OnManifest done) override {
    read.push_back(folder);
    on_read = std::move(done);
  }
  void Remove(const master::DropCheckpoint& drop) override { removed.push_back(drop.name); }
  void Remove(const master::CollectOrphans& collect) override {
    collected.push_back(collect.ledger);
  }

  std::vector<fs::path> made;
  std::vector<std::pair<fs::path, checkpoint::Manifest>> written;
  std::vector<fs::path> read;
  std::vector<std::string> removed;
  std::vector<job::LedgerId> collected;
  OnDone on_made;
  OnDone on_written;
  OnManifest on_read;
};

class PsControllerCoreTest : public testing::Test {
 protected:
  PsControllerCoreTest() {
    core_ = std::make_unique<PsControllerCore>(
        PsControllerCore::Options{.folder = "/checkpoints", .no_progress = seconds(120)},
        PsControllerCore::Channels{
            .watches = {&watches_[0], &watches_[1]}, .restores = restores_, .saves = saves_},
        store_,
        PsControllerCore::Answers{
            .probed =
                [this](master::PsCommandId number, const Result<master::ProbeReply>& reply) {
                  probed_.emplace(number.value(), reply);
                },
            .restored = [this](master::PsCommandId number,
                               const Status& status) { restored_.emplace(number.value(), status); },
            .saved = [this](master::PsCommandId number,
                            const Status& status) { saved_.emplace(number.value(), status); },
            .state = [this](const job::ServerView& view) { states_.push_back(view); },
            .alive = [this](int index, job::PsIncarnation) { alive_.push_back(index); }},
        [this](Duration delay, std::function<void()> call) {
          timers_.emplace(clock_.Now() + delay, std::move(call));
        },
        clock_);
  }

  wire::Welcome WelcomeOf(int server, job::PsIncarnation incarnation, uint64_t progress = 0) const {
    return {.incarnation = incarnation,
            .lanes = kLanes,
            .servers = kServers,
            .index = static_cast<uint32_t>(server),
            .progress_bytes = progress};
  }
  wire::Welcome WelcomeOf(int server) const { return WelcomeOf(server, IncarnationOf(server)); }

  // Lets time pass, with all timers that are due.
  void Advance(Duration by) {
    const Time end = clock_.Now() + by;
    while (!timers_.empty() && timers_.begin()->first <= end) {
      const auto timer = timers_.begin();
      clock_.Advance(timer->first - clock_.Now());
      const std::function<void()> call = std::move(timer->second);
      timers_.erase(timer);
      call();
    }
    clock_.Advance(end - clock_.Now());
  }
  // Answers all requests of a round of server 0, which begins now if none is under way.
  void RunRound(uint64_t progress = 0, job::PsIncarnation incarnation = kFirst) {
    if (watches_[0].requests().empty()) Advance(ServerWatch::kRoundInterval);
    ASSERT_EQ(watches_[0].pending(), MessageType::kHello);
    watches_[0].AnswerHello(WelcomeOf(0, incarnation, progress));
    if (watches_[0].pending() == MessageType::kServe) watches_[0].AnswerAll({}, incarnation);
    if (watches_[0].pending() == MessageType::kState) {
      watches_[0].AnswerAll(wire::Encode(wire::StateAnswer{}), incarnation);
    }
  }

  master::ServeAll Serve(uint64_t ps_epoch) const {
    return {.ps_epoch = job::PsEpoch(ps_epoch),
            .incarnations = {kFirst, kSecond},
            .may_push = true,
            .floor = job::LeaseId(3),
            .covered = {},
            .released = {false, true}};
  }
  master::SaveAll Save(uint64_t number) const {
    return {.number = master::PsCommandId(number),
            .name = kName,
            .ps_epoch = job::PsEpoch(4),
            .incarnations = {kFirst, kSecond},
            .version = 9,
            .covered = {}};
  }
  master::RestoreServers Restore(uint64_t number, const std::string& name = kName) const {
    return {.number = master::PsCommandId(number),
            .ps_epoch = job::PsEpoch(5),
            .servers = {{.index = 0, .incarnation = kFirst}, {.index = 1, .incarnation = kSecond}},
            .checkpoint = name};
  }
  void AnswerHellos(FakeChannel& channel) {
    for (int server = 0; server < kServers; ++server) {
      ASSERT_EQ(channel.pending(), MessageType::kHello);
      ASSERT_EQ(channel.requests().front().server, server);
      channel.AnswerHello(WelcomeOf(server));
    }
  }
  // Up to the request to all lanes to save.
  void BeginSave(const master::SaveAll& save) {
    core_->Do({save});
    ASSERT_THAT(store_.made, SizeIs(1));
    store_.on_made(Ok());
    AnswerHellos(saves_);
  }
  void BeginRestore(const master::RestoreServers& restore) {
    core_->Do({restore});
    checkpoint::Manifest manifest;
    manifest.parts = {{.file = "low", .bytes = 1, .first_bucket = 0, .end_bucket = 512},
                      {.file = "high", .bytes = 1, .first_bucket = 512, .end_bucket = 1024}};
    store_.on_read(manifest);
    AnswerHellos(restores_);
  }
  static std::vector<LaneAnswer> SavedParts(uint64_t first_bytes) {
    std::vector<LaneAnswer> answers;
    for (uint64_t i = 0; i < uint64_t{kServers} * kLanes; ++i) {
      answers.push_back({wire::Encode(wire::SaveAnswer{.bytes = first_bytes + i}),
                         i < kLanes ? kFirst : kSecond});
    }
    return answers;
  }

  FakeClock clock_;
  std::multimap<Time, std::function<void()>> timers_;
  FakeChannel watches_[kServers];
  FakeChannel restores_;
  FakeChannel saves_;
  FakeStore store_;
  std::map<uint64_t, Result<master::ProbeReply>> probed_;
  std::map<uint64_t, Status> restored_;
  std::map<uint64_t, Status> saved_;
  std::vector<job::ServerView> states_;
  std::vector<int> alive_;
  std::unique_ptr<PsControllerCore> core_;
};

// --- the watch ---

TEST_F(PsControllerCoreTest, WatchesEveryServerTwiceASecond) {
  RunRound();
  EXPECT_THAT(alive_, ElementsAre(0));
  ASSERT_THAT(states_, SizeIs(1));
  EXPECT_EQ(states_[0].incarnation, kFirst);
  EXPECT_EQ(watches_[1].pending(), MessageType::kHello) << "it does not wait for the other server";

  Advance(ServerWatch::kRoundInterval - milliseconds(1));
  EXPECT_THAT(watches_[0].requests(), IsEmpty());
  Advance(milliseconds(1));
  EXPECT_EQ(watches_[0].pending(), MessageType::kHello);
}

TEST_F(PsControllerCoreTest, CombinesTheStatesOfTheLanes) {
  RunRound();
  Advance(ServerWatch::kRoundInterval);
  Advance(milliseconds(500));
  watches_[0].AnswerHello(WelcomeOf(0));
  watches_[0].Answer(std::vector<LaneAnswer>{
      {wire::Encode(wire::StateAnswer{.ps_epoch = job::PsEpoch(4), .rows = 10, .rows_pulled = 30}),
       kFirst},
      {wire::Encode(wire::StateAnswer{
           .ps_epoch = job::PsEpoch(4), .rows = 5, .rows_pushed = 7, .leaving = true}),
       kFirst}});
  ASSERT_THAT(states_, SizeIs(2));
  EXPECT_EQ(states_[1].ps_epoch, job::PsEpoch(4));
  EXPECT_EQ(states_[1].rows, 15);
  EXPECT_DOUBLE_EQ(states_[1].rows_pulled_per_s, 30);
  EXPECT_DOUBLE_EQ(states_[1].rows_pushed_per_s, 7);
  EXPECT_TRUE(states_[1].leaving);
}

TEST_F(PsControllerCoreTest, IgnoresAStateOfAnotherIncarnation) {
  watches_[0].AnswerHello(WelcomeOf(0));
  watches_[0].Answer(std::vector<LaneAnswer>{{wire::Encode(wire::StateAnswer{}), kFirst},
                                             {wire::Encode(wire::StateAnswer{}), kSecond}});
  EXPECT_THAT(states_, IsEmpty());
  RunRound();
  EXPECT_THAT(states_, SizeIs(1)) << "the next round is not affected";
}

TEST_F(PsControllerCoreTest, WaitsLongerForTheStateOfAServerThatServes) {
  watches_[0].AnswerHello(WelcomeOf(0));
  EXPECT_EQ(watches_[0].requests().front().timeout, ServerWatch::kStateTimeoutBeforeServe);
  watches_[0].AnswerAll(wire::Encode(wire::StateAnswer{}), kFirst);
  core_->Do({Serve(4)});
  watches_[0].AnswerHello(WelcomeOf(0));
  watches_[0].AnswerAll({}, kFirst);
  EXPECT_EQ(watches_[0].requests().front().timeout, ServerWatch::kTimeout);
}

TEST_F(PsControllerCoreTest, AnswersAProbeOverANewConnection) {
  RunRound();
  core_->Do({master::ProbeServer{.number = master::PsCommandId(8), .index = 0}});
  EXPECT_EQ(watches_[0].resets(), 1) << "a kept connection may lead to a process that was replaced";
  watches_[0].AnswerHello(WelcomeOf(0));
  ASSERT_TRUE(probed_.contains(8));
  ASSERT_OK(probed_.at(8));
  EXPECT_EQ(probed_.at(8)->incarnation, kFirst);
  EXPECT_EQ(probed_.at(8)->lanes, kLanes);
}

TEST_F(PsControllerCoreTest, AProbeDuringARoundIsAnsweredByTheNextRound) {
  core_->Do({master::ProbeServer{.number = master::PsCommandId(8), .index = 0}});
  RunRound();
  EXPECT_THAT(probed_, IsEmpty()) << "that Hello was sent before the probe";
  ASSERT_EQ(watches_[0].pending(), MessageType::kHello) << "the next round begins at once";
  watches_[0].AnswerHello(Unavailable("nobody listens"));
  EXPECT_THAT(probed_.at(8), StatusIs(Code::kUnavailable, HasSubstr("nobody listens")));
}

TEST_F(PsControllerCoreTest, AProbeFailsIfAnotherServerHasTheAddress) {
  RunRound();
  core_->Do({master::ProbeServer{.number = master::PsCommandId(8), .index = 0}});
  watches_[0].AnswerHello(WelcomeOf(1));
  EXPECT_THAT(probed_.at(8), StatusIs(Code::kUnavailable, HasSubstr("server 1 of 2")));
  EXPECT_THAT(alive_, ElementsAre(0)) << "only from the round before";
}

TEST_F(PsControllerCoreTest, TellsAServerOnceWhatItMayServe) {
  RunRound();
  core_->Do({Serve(4)});
  ASSERT_EQ(watches_[0].pending(), MessageType::kHello) << "it does not wait for the next round";
  watches_[0].AnswerHello(WelcomeOf(0));
  ASSERT_EQ(watches_[0].pending(), MessageType::kServe);
  const ServerMessage& message = watches_[0].requests().front().messages.at(0);
  ASSERT_THAT(message.metas, SizeIs(kLanes));
  const auto serve = Read<wire::Serve>(message.metas[1]);
  EXPECT_EQ(serve.incarnation, kFirst);
  EXPECT_EQ(serve.ps_epoch, job::PsEpoch(4));
  EXPECT_TRUE(serve.may_push);
  EXPECT_EQ(serve.floor, job::LeaseId(3));
  EXPECT_FALSE(serve.released) << "the other server is";
  watches_[0].AnswerAll({}, kFirst);
  watches_[0].AnswerAll(wire::Encode(wire::StateAnswer{}), kFirst);

  Advance(ServerWatch::kRoundInterval);
  watches_[0].AnswerHello(WelcomeOf(0));
  EXPECT_EQ(watches_[0].pending(), MessageType::kState) << "it has acknowledged Serve";
}

TEST_F(PsControllerCoreTest, RepeatsAServeThatNotAllLanesAcknowledged) {
  RunRound();
  core_->Do({Serve(4)});
  watches_[0].AnswerHello(WelcomeOf(0));
  watches_[0].Answer(Unavailable("the connection broke"));
  Advance(ServerWatch::kRoundInterval);
  watches_[0].AnswerHello(WelcomeOf(0));
  EXPECT_EQ(watches_[0].pending(), MessageType::kServe);
}

TEST_F(PsControllerCoreTest, SendsTheNewestServeIfTheMasterDecidesAgainMeanwhile) {
  RunRound();
  core_->Do({Serve(4)});
  watches_[0].AnswerHello(WelcomeOf(0));
  core_->Do({Serve(5)});
  watches_[0].AnswerAll({}, kFirst);
  watches_[0].AnswerAll(wire::Encode(wire::StateAnswer{}), kFirst);
  ASSERT_EQ(watches_[0].pending(), MessageType::kHello);
  watches_[0].AnswerHello(WelcomeOf(0));
  ASSERT_EQ(watches_[0].pending(), MessageType::kServe) << "the acknowledged one is older";
  EXPECT_EQ(Read<wire::Serve>(watches_[0].requests().front().messages.at(0).metas[0]).ps_epoch,
            job::PsEpoch(5));
}

TEST_F(PsControllerCoreTest, TellsNothingToAnIncarnationThatTheMasterDoesNotMean) {
  RunRound();
  core_->Do({Serve(4)});
  watches_[0].AnswerHello(WelcomeOf(0, job::PsIncarnation(99)));
  EXPECT_THAT(watches_[0].requests(), IsEmpty());
  EXPECT_EQ(states_.back().incarnation, job::PsIncarnation(99)) << "the master decides";
  EXPECT_EQ(watches_[0].resets(), 1);
}

// --- saves ---

TEST_F(PsControllerCoreTest, ASaveMakesTheFolderThenThePartsThenTheManifest) {
  core_->Do({Save(1)});
  EXPECT_THAT(store_.made, ElementsAre(fs::path("/checkpoints") / kName));
  EXPECT_THAT(saves_.requests(), IsEmpty()) << "not before there is a folder";
  store_.on_made(Ok());
  AnswerHellos(saves_);
  ASSERT_EQ(saves_.pending(), MessageType::kSave);
  EXPECT_EQ(saves_.requests().front().timeout, std::nullopt) << "it may take long";
  const std::vector<ServerMessage>& messages = saves_.requests().front().messages;
  ASSERT_THAT(messages, SizeIs(kServers));
  EXPECT_EQ(Read<wire::Save>(messages[1].metas.at(0)).path,
            fmt::format("/checkpoints/{}/part-0002-of-0004-{:016x}", kName, kSecond));
  EXPECT_THAT(store_.written, IsEmpty());

  saves_.Answer(SavedParts(/*first_bytes=*/100));
  ASSERT_THAT(store_.written, SizeIs(1));
  const checkpoint::Manifest& manifest = store_.written[0].second;
  EXPECT_EQ(manifest.ps_epoch, job::PsEpoch(4));
  EXPECT_EQ(manifest.version, 9);
  ASSERT_THAT(manifest.parts, SizeIs(4));
  EXPECT_EQ(manifest.parts[3].bytes, 103U);
  EXPECT_EQ(manifest.parts[3].first_bucket, 768U);
  EXPECT_EQ(manifest.parts[3].end_bucket, wire::kBuckets);
  EXPECT_THAT(saved_, IsEmpty()) << "not before the manifest is written";
  store_.on_written(Ok());
  EXPECT_OK(saved_.at(1));
}

TEST_F(PsControllerCoreTest, ASaveFlushesFirstIfTheMasterWantsThat) {
  master::SaveAll save = Save(1);
  save.flush = true;
  BeginSave(save);
  ASSERT_EQ(saves_.pending(), MessageType::kFlush);
  EXPECT_EQ(saves_.requests().front().messages.at(0).metas.at(0), "");
  saves_.AnswerAll({}, kFirst);
  EXPECT_EQ(saves_.pending(), MessageType::kSave);
}

TEST_F(PsControllerCoreTest, ASaveFailsWithItsFirstFailedStep) {
  core_->Do({Save(1)});
  store_.on_made(AlreadyExists("it exists"));
  EXPECT_THAT(saved_.at(1), StatusIs(Code::kAlreadyExists));
  EXPECT_THAT(saves_.requests(), IsEmpty());

  core_->Do({Save(2)});
  store_.on_made(Ok());
  saves_.AnswerHello(Unavailable("nobody listens"));
  EXPECT_THAT(saved_.at(2), StatusIs(Code::kUnavailable));

  store_.made.clear();
  BeginSave(Save(3));
  saves_.Answer(ResourceExhausted("the disk is full"));
  EXPECT_THAT(saved_.at(3), StatusIs(Code::kResourceExhausted));
  EXPECT_THAT(store_.written, IsEmpty());
}

TEST_F(PsControllerCoreTest, ASaveIsAbortedIfAServerIsAnotherIncarnation) {
  core_->Do({Save(1)});
  store_.on_made(Ok());
  saves_.AnswerHello(WelcomeOf(0));
  saves_.AnswerHello(WelcomeOf(1, job::PsIncarnation(99)));
  EXPECT_THAT(saved_.at(1), StatusIs(Code::kAborted));
  EXPECT_THAT(saves_.requests(), IsEmpty()) << "nothing is saved";
}

TEST_F(PsControllerCoreTest, ASaveIsAbortedIfAServerIsRestartedDuringIt) {
  BeginSave(Save(1));
  std::vector<LaneAnswer> answers = SavedParts(100);
  answers[2].incarnation = job::PsIncarnation(99);
  saves_.Answer(answers);
  EXPECT_THAT(saved_.at(1), StatusIs(Code::kAborted));
  EXPECT_THAT(store_.written, IsEmpty());
}

TEST_F(PsControllerCoreTest, ACancelledSaveIsAnswered) {
  BeginSave(Save(1));
  core_->Do({master::CancelSave{.number = master::PsCommandId(2)}});
  EXPECT_EQ(saves_.resets(), 0) << "that was another save";
  core_->Do({master::CancelSave{.number = master::PsCommandId(1)}});
  EXPECT_EQ(saves_.resets(), 1);
  saves_.Answer(Cancelled("the channel was reset"));
  EXPECT_THAT(saved_.at(1), StatusIs(Code::kCancelled));
}

TEST_F(PsControllerCoreTest, ASaveThatIsCancelledBetweenTwoStepsGoesNoFurther) {
  core_->Do({Save(1)});
  core_->Do({master::CancelSave{.number = master::PsCommandId(1)}});
  store_.on_made(Ok());
  EXPECT_THAT(saves_.requests(), IsEmpty());
  EXPECT_THAT(saved_.at(1), StatusIs(Code::kCancelled));
}

TEST_F(PsControllerCoreTest, ASaveThatWasDoneBeforeItWasCancelledSucceeds) {
  BeginSave(Save(1));
  core_->Do({master::CancelSave{.number = master::PsCommandId(1)}});
  saves_.Answer(SavedParts(100));
  store_.on_written(Ok());
  EXPECT_OK(saved_.at(1));
}

TEST_F(PsControllerCoreTest, SavesOneAfterTheOther) {
  BeginSave(Save(1));
  core_->Do({Save(2), Save(3)});
  core_->Do({master::CancelSave{.number = master::PsCommandId(2)}});
  EXPECT_THAT(store_.made, SizeIs(1));
  EXPECT_EQ(saves_.resets(), 0) << "the first save goes on";
  saves_.Answer(Unavailable("the connection broke"));
  EXPECT_THAT(saved_.at(2), StatusIs(Code::kCancelled)) << "without a step of it";
  EXPECT_THAT(store_.made, SizeIs(2)) << "the third has begun";
}

TEST_F(PsControllerCoreTest, ASaveMayTakeAsLongAsAnyServerMakesProgress) {
  BeginSave(Save(1));
  for (uint64_t progress = 1; progress <= 3; ++progress) {
    RunRound(progress);
    Advance(seconds(119));
    RunRound(progress);
    EXPECT_EQ(saves_.resets(), 0) << "after " << progress;
  }
  Advance(seconds(2));
  RunRound(3);
  EXPECT_EQ(saves_.resets(), 1);
  saves_.Answer(Cancelled("the channel was reset"));
  EXPECT_THAT(saved_.at(1), StatusIs(Code::kDeadlineExceeded, HasSubstr("120 s")));
}

TEST_F(PsControllerCoreTest, ANewIncarnationCountsAsProgress) {
  RunRound(5);
  BeginSave(Save(1));
  Advance(seconds(121));
  RunRound(5, job::PsIncarnation(99));
  EXPECT_EQ(saves_.resets(), 0);
}

TEST_F(PsControllerCoreTest, ARoundWithoutAnAnswerIsNoProgress) {
  RunRound();
  BeginSave(Save(1));
  Advance(seconds(121));
  watches_[0].AnswerHello(DeadlineExceeded("no answer"));
  EXPECT_EQ(saves_.resets(), 1);
}

// --- restores ---

TEST_F(PsControllerCoreTest, ARestoreGivesEachLaneThePartsOfItsBuckets) {
  BeginRestore(Restore(1));
  EXPECT_THAT(store_.read, ElementsAre(fs::path("/checkpoints") / kName));
  ASSERT_EQ(restores_.pending(), MessageType::kRestore);
  const std::vector<ServerMessage>& messages = restores_.requests().front().messages;
  const auto first = Read<wire::Restore>(messages.at(0).metas.at(1));
  EXPECT_EQ(first.incarnation, kFirst);
  EXPECT_EQ(first.ps_epoch, job::PsEpoch(5));
  EXPECT_TRUE(first.with_watermarks);
  EXPECT_THAT(first.paths, ElementsAre(fmt::format("/checkpoints/{}/low", kName)));
  const auto last = Read<wire::Restore>(messages.at(1).metas.at(0));
  EXPECT_THAT(last.paths, ElementsAre(fmt::format("/checkpoints/{}/high", kName)));
  restores_.AnswerAll(wire::Encode(wire::RestoreAnswer{}), kFirst);
  EXPECT_OK(restored_.at(1));
}

TEST_F(PsControllerCoreTest, ARestoreFromNothingReadsNothing) {
  core_->Do({Restore(1, "")});
  AnswerHellos(restores_);
  EXPECT_THAT(store_.read, IsEmpty());
  EXPECT_THAT(Read<wire::Restore>(restores_.requests().front().messages.at(0).metas.at(0)).paths,
              IsEmpty());
}

TEST_F(PsControllerCoreTest, ACheckpointOfAnotherJobIsAPathAndGivesNoWatermarks) {
  master::RestoreServers restore = Restore(1, "/other/checkpoint");
  restore.of_another_job = true;
  BeginRestore(restore);
  EXPECT_THAT(store_.read, ElementsAre("/other/checkpoint"));
  EXPECT_FALSE(
      Read<wire::Restore>(restores_.requests().front().messages.at(0).metas.at(0)).with_watermarks);
}

TEST_F(PsControllerCoreTest, AFileThatOnlyAServerDoesNotSeeIsNotMissing) {
  BeginRestore(Restore(1));
  restores_.Answer(NotFound("part-0"));
  EXPECT_THAT(restored_.at(1), StatusIs(Code::kUnavailable, HasSubstr("volume")));

  core_->Do({Restore(2)});
  store_.on_read(NotFound("no such checkpoint"));
  EXPECT_THAT(restored_.at(2), StatusIs(Code::kNotFound)) << "the master does not see it either";

  BeginRestore(Restore(3));
  restores_.Answer(DataLoss("part-0 is damaged"));
  EXPECT_THAT(restored_.at(3), StatusIs(Code::kDataLoss));
}

TEST_F(PsControllerCoreTest, ANewRestoreCancelsTheOneBefore) {
  BeginRestore(Restore(1));
  core_->Do({Restore(2, "")});
  EXPECT_EQ(restores_.resets(), 1);
  EXPECT_THAT(restores_.requests(), SizeIs(1)) << "the second waits until the first has ended";
  restores_.Answer(Cancelled("the channel was reset"));
  EXPECT_THAT(restored_.at(1), StatusIs(Code::kCancelled));
  AnswerHellos(restores_);
  restores_.AnswerAll(wire::Encode(wire::RestoreAnswer{}), kFirst);
  EXPECT_OK(restored_.at(2));
}

TEST_F(PsControllerCoreTest, ARestoreWithoutProgressFails) {
  RunRound();
  BeginRestore(Restore(1));
  Advance(seconds(121));
  RunRound();
  restores_.Answer(Cancelled("the channel was reset"));
  EXPECT_THAT(restored_.at(1), StatusIs(Code::kDeadlineExceeded));
}

TEST_F(PsControllerCoreTest, ASaveDoesNotWaitForARestore) {
  BeginRestore(Restore(1));
  BeginSave(Save(2));
  EXPECT_EQ(saves_.pending(), MessageType::kSave);
  EXPECT_EQ(restores_.pending(), MessageType::kRestore);
}

TEST_F(PsControllerCoreTest, RemovesWhatTheMasterNames) {
  core_->Do(
      {master::DropCheckpoint{.name = kName}, master::CollectOrphans{.ledger = job::LedgerId(7)}});
  EXPECT_THAT(store_.removed, ElementsAre(kName));
  EXPECT_THAT(store_.collected, ElementsAre(job::LedgerId(7)));
}

}  // namespace
}  // namespace edl::ps_control
