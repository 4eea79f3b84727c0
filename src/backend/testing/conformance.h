#pragma once

#include <algorithm>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/backend.h"
#include "backend/testing/event_recorder.h"
#include "base/testing/status_matchers.h"

// The behaviour of every backend, as one suite. The test of a backend includes this file once and
// contains
//
//   INSTANTIATE_TEST_SUITE_P(Fake, BackendConformance, testing::Values(MakeSubject(...)));
namespace edl::backend {

// A backend under test, and commands that its replicas can run.
class ConformanceSubject {
 public:
  virtual ~ConformanceSubject() = default;
  // Called once, before anything else.
  virtual Status Start() { return Ok(); }
  virtual Backend& backend() = 0;
  virtual bool HasProcessIds() const { return true; }  // that users can see
  virtual bool KeepsLogs() const { return true; }

  virtual std::vector<std::string> ThatRuns() = 0;         // until it is killed; SIGTERM kills it
  virtual std::vector<std::string> ThatIgnoresTerm() = 0;  // only SIGKILL kills it
  virtual std::vector<std::string> ThatExits(int code) = 0;
  virtual std::vector<std::string> ThatDiesOf(int signal) = 0;               // sent by itself
  virtual std::vector<std::string> ThatPrints(const std::string& text) = 0;  // then exits 0
  virtual std::vector<std::string> ThatCannotStart() = 0;

  // Kills a replica that was reported as kRunning, as a preemption does.
  virtual void KillFromOutside(const job::ReplicaEvent& running, int signal) = 0;
};

using MakeSubject = std::function<std::unique_ptr<ConformanceSubject>()>;

class BackendConformance : public testing::TestWithParam<MakeSubject> {
 protected:
  using Kind = job::ReplicaEvent::Kind;
  using Cause = job::ExitCause::Kind;

  void SetUp() override {
    subject_ = GetParam()();
    ASSERT_OK(subject_->Start());
  }
  // The recorders outlive the backend that calls them.
  void TearDown() override { subject_.reset(); }

  Backend& backend() { return subject_->backend(); }
  ConformanceSubject& subject() { return *subject_; }

  static job::ReplicaSpec Worker(int64_t id, std::vector<std::string> command) {
    return {.name = "suite-edljob-worker-" + std::to_string(id),
            .role = job::Role::kWorker,
            .index = static_cast<int>(id),
            .id = id,
            .command = std::move(command)};
  }

  // Launches `command` as worker 0 of a watched backend and waits for its exit.
  job::ExitCause CauseOf(std::vector<std::string> command) {
    const job::ReplicaSpec spec = Worker(0, std::move(command));
    backend().Watch(recorder_.Watcher());
    EXPECT_EQ(backend().Launch(spec), Ok());
    const auto exited = recorder_.Await(Kind::kExited, spec.name);
    EXPECT_TRUE(exited.has_value());
    return exited.value_or(job::ReplicaEvent{}).cause;
  }

  // The events that a new watcher receives before kSynced.
  std::vector<job::ReplicaEvent> Relist() {
    auto recorder = std::make_unique<EventRecorder>();
    backend().Watch(recorder->Watcher());
    EXPECT_TRUE(recorder->Await(Kind::kSynced).has_value());
    std::vector<job::ReplicaEvent> events = recorder->Events();
    const auto synced = std::find_if(events.begin(), events.end(),
                                     [](const auto& event) { return event.kind == Kind::kSynced; });
    events.erase(synced, events.end());
    spent_recorders_.push_back(std::move(recorder));
    return events;
  }

  EventRecorder recorder_;

 private:
  std::unique_ptr<ConformanceSubject> subject_;
  std::vector<std::unique_ptr<EventRecorder>> spent_recorders_;  // for calls that are still running
};

TEST_P(BackendConformance, ReportsSyncedWhenThereAreNoReplicas) { EXPECT_TRUE(Relist().empty()); }

TEST_P(BackendConformance, ReportsRunningWithAProcessIdBeforeTheExit) {
  CauseOf(subject().ThatExits(0));

  const auto running = recorder_.Await(Kind::kRunning, Worker(0, {}).name);

  ASSERT_TRUE(running.has_value());
  if (subject().HasProcessIds()) {
    EXPECT_GT(running->process_id, 0);
  }
}

TEST_P(BackendConformance, ReportsExitCodeZeroAsSucceeded) {
  EXPECT_EQ(CauseOf(subject().ThatExits(0)).kind, Cause::kSucceeded);
}

TEST_P(BackendConformance, ReportsAnotherExitCodeAsFailed) {
  const job::ExitCause cause = CauseOf(subject().ThatExits(3));

  EXPECT_EQ(cause.kind, Cause::kFailed);
  EXPECT_EQ(cause.exit_code, 3);
  EXPECT_EQ(cause.signal, 0);
}

TEST_P(BackendConformance, ReportsASignalThatTheProgramRaisedAsFailed) {
  const job::ExitCause cause = CauseOf(subject().ThatDiesOf(SIGSEGV));

  EXPECT_EQ(cause.kind, Cause::kFailed);
  EXPECT_EQ(cause.signal, SIGSEGV);
}

TEST_P(BackendConformance, ReportsSigkillFromOutsideAsKilled) {
  const job::ReplicaSpec spec = Worker(0, subject().ThatRuns());
  backend().Watch(recorder_.Watcher());
  ASSERT_EQ(backend().Launch(spec), Ok());
  const auto running = recorder_.Await(Kind::kRunning, spec.name);
  ASSERT_TRUE(running.has_value());

  subject().KillFromOutside(*running, SIGKILL);

  const auto exited = recorder_.Await(Kind::kExited, spec.name);
  ASSERT_TRUE(exited.has_value());
  EXPECT_EQ(exited->cause.kind, Cause::kKilled);
  EXPECT_EQ(exited->cause.signal, SIGKILL);
}

TEST_P(BackendConformance, ReportsACommandThatCannotStartAsNotLaunched) {
  const job::ExitCause cause = CauseOf(subject().ThatCannotStart());

  EXPECT_EQ(cause.kind, Cause::kNotLaunched);
  EXPECT_FALSE(cause.message.empty());
}

TEST_P(BackendConformance, LaunchesANameOnce) {
  const job::ReplicaSpec spec = Worker(0, subject().ThatRuns());
  backend().Watch(recorder_.Watcher());
  ASSERT_EQ(backend().Launch(spec), Ok());
  const auto running = recorder_.Await(Kind::kRunning, spec.name);
  ASSERT_TRUE(running.has_value());

  ASSERT_EQ(backend().Launch(spec), Ok());

  const auto listed = Relist();
  ASSERT_EQ(listed.size(), 1);
  EXPECT_EQ(listed.front().kind, Kind::kRunning);
  EXPECT_EQ(listed.front().process_id, running->process_id);
}

TEST_P(BackendConformance, ReportsAnExitToEachNewWatcherUntilItIsAcknowledged) {
  CauseOf(subject().ThatExits(3));
  const std::string name = Worker(0, {}).name;

  for (int watcher = 0; watcher < 2; ++watcher) {
    const auto listed = Relist();
    ASSERT_EQ(listed.size(), 1);
    EXPECT_EQ(listed.front().kind, Kind::kExited);
    EXPECT_EQ(listed.front().cause.exit_code, 3);
  }
  EXPECT_EQ(backend().Acknowledge(name), Ok());
  EXPECT_TRUE(Relist().empty());
  EXPECT_EQ(backend().Acknowledge(name), Ok());
}

TEST_P(BackendConformance, DoesNotLaunchANameAgainAfterItsExit) {
  const job::ReplicaSpec spec = Worker(0, subject().ThatExits(0));
  CauseOf(spec.command);

  ASSERT_EQ(backend().Launch(spec), Ok());
  ASSERT_EQ(backend().Acknowledge(spec.name), Ok());
  ASSERT_EQ(backend().Launch(spec), Ok());

  EXPECT_TRUE(Relist().empty());
}

TEST_P(BackendConformance, IgnoresAnAcknowledgementOfARunningReplica) {
  const job::ReplicaSpec spec = Worker(0, subject().ThatRuns());
  backend().Watch(recorder_.Watcher());
  ASSERT_EQ(backend().Launch(spec), Ok());
  ASSERT_TRUE(recorder_.Await(Kind::kRunning, spec.name).has_value());

  EXPECT_EQ(backend().Acknowledge(spec.name), Ok());

  EXPECT_EQ(Relist().size(), 1);
}

TEST_P(BackendConformance, StopsWithSigterm) {
  const job::ReplicaSpec spec = Worker(0, subject().ThatRuns());
  backend().Watch(recorder_.Watcher());
  ASSERT_EQ(backend().Launch(spec), Ok());
  ASSERT_TRUE(recorder_.Await(Kind::kRunning, spec.name).has_value());

  ASSERT_EQ(backend().Stop(spec.name, EventRecorder::kTimeout), Ok());

  const auto exited = recorder_.Await(Kind::kExited, spec.name);
  ASSERT_TRUE(exited.has_value());
  EXPECT_EQ(exited->cause.signal, SIGTERM);
  EXPECT_EQ(backend().Stop(spec.name, EventRecorder::kTimeout), Ok());
}

TEST_P(BackendConformance, KillsAReplicaThatIgnoresSigtermAfterTheGracePeriod) {
  const job::ReplicaSpec spec = Worker(0, subject().ThatIgnoresTerm());
  backend().Watch(recorder_.Watcher());
  ASSERT_EQ(backend().Launch(spec), Ok());
  ASSERT_TRUE(recorder_.Await(Kind::kRunning, spec.name).has_value());

  ASSERT_EQ(backend().Stop(spec.name, std::chrono::milliseconds(1)), Ok());

  const auto exited = recorder_.Await(Kind::kExited, spec.name);
  ASSERT_TRUE(exited.has_value());
  EXPECT_EQ(exited->cause.kind, Cause::kKilled);
}

TEST_P(BackendConformance, AcceptsStopAndAcknowledgeOfAnUnknownReplica) {
  EXPECT_EQ(backend().Stop("suite-edljob-worker-7", std::chrono::milliseconds(1)), Ok());
  EXPECT_EQ(backend().Acknowledge("suite-edljob-worker-7"), Ok());
}

TEST_P(BackendConformance, AllowsCallsFromTheWatcher) {
  const std::string first = Worker(0, {}).name;
  const std::string second = Worker(1, {}).name;
  backend().Watch([this, first](const job::ReplicaEvent& event) {
    if (event.kind == Kind::kExited && event.name == first) {
      EXPECT_EQ(backend().Acknowledge(first), Ok());
      EXPECT_EQ(backend().Launch(Worker(1, subject().ThatExits(0))), Ok());
    }
    recorder_.Watcher()(event);
  });

  ASSERT_EQ(backend().Launch(Worker(0, subject().ThatExits(0))), Ok());

  EXPECT_TRUE(recorder_.Await(Kind::kExited, second).has_value());
}

TEST_P(BackendConformance, ReadsLogsFromAnyOffset) {
  if (!subject().KeepsLogs()) GTEST_SKIP() << "the backend has no output of workers";
  CauseOf(subject().ThatPrints("0123456789"));
  const std::string name = Worker(0, {}).name;
  struct Case {
    int64_t offset, at_most;
    std::string text;
    int64_t next_offset;
  };
  const std::vector<Case> cases = {
      {0, 100, "0123456789", 10}, {0, 4, "0123", 4}, {4, 100, "456789", 10},
      {-3, 100, "789", 10},       {-3, 2, "78", 9},  {-100, 2, "01", 2},
      {10, 100, "", 10},          {99, 100, "", 10}, {5, 0, "", 5},
  };
  for (const Case& wanted : cases) {
    const auto piece = backend().Logs(name, wanted.offset, wanted.at_most);
    ASSERT_OK(piece);
    EXPECT_EQ(piece->text, wanted.text) << "from " << wanted.offset;
    EXPECT_EQ(piece->next_offset, wanted.next_offset) << "from " << wanted.offset;
  }
}

TEST_P(BackendConformance, HasNoLogsOfAnUnknownReplica) {
  EXPECT_THAT(backend().Logs("suite-edljob-worker-7", 0, 100), StatusIs(Code::kNotFound));
}

TEST_P(BackendConformance, KeepsLogsAfterTheAcknowledgement) {
  if (!subject().KeepsLogs()) GTEST_SKIP() << "the backend has no output of workers";
  CauseOf(subject().ThatPrints("once"));
  const std::string name = Worker(0, {}).name;

  ASSERT_EQ(backend().Acknowledge(name), Ok());

  const auto piece = backend().Logs(name, 0, 100);
  ASSERT_OK(piece);
  EXPECT_EQ(piece->text, "once");
}

TEST_P(BackendConformance, GivesEachSlotItsOwnAddressAndKeepsIt) {
  const auto worker_0 = backend().AddressOf(job::Role::kWorker, 0);
  const auto worker_1 = backend().AddressOf(job::Role::kWorker, 1);
  const auto ps_0 = backend().AddressOf(job::Role::kPs, 0);
  ASSERT_TRUE(worker_0.ok() && worker_1.ok() && ps_0.ok());

  EXPECT_NE(*worker_0, *worker_1);
  EXPECT_NE(*worker_0, *ps_0);
  EXPECT_NE(*worker_1, *ps_0);
  EXPECT_EQ(backend().AddressOf(job::Role::kWorker, 0).value(), *worker_0);
}

}  // namespace edl::backend
