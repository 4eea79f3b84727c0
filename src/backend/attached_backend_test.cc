#include "backend/attached_backend.h"

#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/exit_cause.h"
#include "backend/testing/conformance.h"
#include "backend/testing/fake_backend.h"
#include "base/testing/await.h"
#include "base/testing/status_matchers.h"

namespace edl::backend {
namespace {

using Kind = job::ReplicaEvent::Kind;
using NoticeKind = AttachedBackend::Notice::Kind;
using std::chrono::milliseconds;

// Records notices, and waits for them. Thread-safe.
class NoticeRecorder {
 public:
  auto OnNotice() {
    return [this](const AttachedBackend::Notice& notice) {
      const MutexLock lock(mutex_);
      notices_.push_back(notice);
      changed_.NotifyAll();
    };
  }
  // Waits for the notice with this number, from 0.
  AttachedBackend::Notice Await(size_t number) {
    const MutexLock lock(mutex_);
    EXPECT_OK(edl::Await(mutex_, changed_, fmt::format("notice {}", number),
                         [&]() REQUIRES(mutex_) { return notices_.size() > number; }));
    return notices_.size() > number ? notices_[number] : AttachedBackend::Notice{};
  }
  size_t size() {
    const MutexLock lock(mutex_);
    return notices_.size();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<AttachedBackend::Notice> notices_ GUARDED_BY(mutex_);
};

// Attached processes that do as their commands say: {verb, argument}. They act on a thread of their
// own.
class AttachedSubject final : public ConformanceSubject {
 public:
  AttachedSubject() : backend_(std::make_unique<FakeBackend>()), processes_([this] { Act(); }) {
    backend_.SetOnNotice([this](const AttachedBackend::Notice& notice) {
      const MutexLock lock(mutex_);
      notices_.push_back(notice);
      changed_.NotifyAll();
    });
    for (uint64_t id = 1; id <= 4; ++id) backend_.Attach(AttachmentId(id));
  }
  ~AttachedSubject() override {
    {
      const MutexLock lock(mutex_);
      ending_ = true;
    }
    changed_.NotifyAll();
    processes_.join();
  }

  Backend& backend() override { return backend_; }
  bool HasProcessIds() const override { return false; }
  bool KeepsLogs() const override { return false; }
  std::vector<std::string> ThatRuns() override { return {"run"}; }
  std::vector<std::string> ThatIgnoresTerm() override { return {"ignore"}; }
  std::vector<std::string> ThatExits(int code) override { return {"exit", std::to_string(code)}; }
  std::vector<std::string> ThatDiesOf(int signal) override {
    return {"die", std::to_string(signal)};
  }
  std::vector<std::string> ThatPrints(const std::string&) override { return {"exit", "0"}; }
  std::vector<std::string> ThatCannotStart() override { return {"/no/such/program"}; }
  void KillFromOutside(const job::ReplicaEvent& running, int signal) override {
    backend_.ReportExit(running.name, CauseOfSignal(signal));
  }

 private:
  void Act() {
    const MutexLock lock(mutex_);
    while (true) {
      while (notices_.empty() && !ending_) changed_.Wait(mutex_);
      if (ending_) return;
      const AttachedBackend::Notice notice = std::move(notices_.front());
      notices_.erase(notices_.begin());
      mutex_.unlock();
      Act(notice);
      mutex_.lock();
    }
  }

  void Act(const AttachedBackend::Notice& notice) {
    const std::string& verb = notice.worker.command.at(0);
    if (notice.kind == NoticeKind::kStop && verb == "run") {
      backend_.ReportExit(notice.worker.name, CauseOfSignal(SIGTERM));
    }
    if (notice.kind != NoticeKind::kRun || verb == "run" || verb == "ignore") return;
    job::ExitCause cause{.kind = job::ExitCause::Kind::kNotLaunched, .message = "no " + verb};
    if (verb == "exit") cause = CauseOfExit(std::stoi(notice.worker.command.at(1)));
    if (verb == "die") cause = CauseOfSignal(std::stoi(notice.worker.command.at(1)));
    backend_.ReportExit(notice.worker.name, cause);
  }

  Mutex mutex_;
  CondVar changed_;
  std::vector<AttachedBackend::Notice> notices_ GUARDED_BY(mutex_);
  bool ending_ GUARDED_BY(mutex_) = false;
  AttachedBackend backend_;
  std::thread processes_;
};

INSTANTIATE_TEST_SUITE_P(Attached, BackendConformance, testing::Values(MakeSubject([] {
                           return std::make_unique<AttachedSubject>();
                         })));

class AttachedBackendTest : public testing::Test {
 protected:
  AttachedBackendTest() {
    auto others = std::make_unique<FakeBackend>();
    others_ = others.get();
    backend_ = std::make_unique<AttachedBackend>(std::move(others));
    backend_->SetOnNotice(notices_.OnNotice());
    backend_->Watch(recorder_.Watcher());
  }

  static job::ReplicaSpec Worker(int64_t id) {
    return {.name = "iris-worker-" + std::to_string(id),
            .role = job::Role::kWorker,
            .id = id,
            .command = {"python3", "-m", "elasticdl.worker"},
            .env = {{"WORKER_ID", std::to_string(id)}}};
  }

  NoticeRecorder notices_;
  EventRecorder recorder_;
  FakeBackend* others_ = nullptr;
  std::unique_ptr<AttachedBackend> backend_;
};

TEST_F(AttachedBackendTest, KeepsAWorkerPendingUntilAProcessAttaches) {
  ASSERT_OK(backend_->Launch(Worker(0)));
  const auto pending = recorder_.Await(Kind::kPending, "iris-worker-0");
  ASSERT_TRUE(pending.has_value());
  EXPECT_EQ(pending->reason, "waits for a process that attaches as a worker");
  EXPECT_EQ(notices_.size(), 0U);

  EXPECT_EQ(backend_->Attach(AttachmentId(7)), 0U);

  const AttachedBackend::Notice run = notices_.Await(0);
  EXPECT_EQ(run.kind, NoticeKind::kRun);
  EXPECT_EQ(run.attachment, AttachmentId(7));
  EXPECT_EQ(run.worker.command, Worker(0).command);
  EXPECT_EQ(run.worker.env, Worker(0).env);
  EXPECT_TRUE(recorder_.Await(Kind::kRunning, "iris-worker-0").has_value());
  EXPECT_TRUE(others_->Launched().empty());
}

TEST_F(AttachedBackendTest, GivesTheOldestWorkerToTheOldestProcess) {
  EXPECT_EQ(backend_->Attach(AttachmentId(1)), 1U);
  EXPECT_EQ(backend_->Attach(AttachmentId(2)), 2U);

  for (const int64_t id : {10, 2}) ASSERT_OK(backend_->Launch(Worker(id)));

  EXPECT_EQ(notices_.Await(0).attachment, AttachmentId(1));
  EXPECT_EQ(notices_.Await(0).worker.name, "iris-worker-10");
  EXPECT_EQ(notices_.Await(1).attachment, AttachmentId(2));
  EXPECT_EQ(notices_.Await(1).worker.name, "iris-worker-2");

  for (const int64_t id : {30, 4}) ASSERT_OK(backend_->Launch(Worker(id)));
  EXPECT_EQ(backend_->Attach(AttachmentId(3)), 0U);

  EXPECT_EQ(notices_.Await(2).worker.name, "iris-worker-30");
}

TEST_F(AttachedBackendTest, RunsOtherRolesAtTheOtherBackend) {
  const job::ReplicaSpec ps{.name = "iris-ps-0", .role = job::Role::kPs};
  ASSERT_OK(backend_->Launch(ps));
  ASSERT_TRUE(recorder_.Await(Kind::kRunning, ps.name).has_value());

  ASSERT_OK(backend_->Stop(ps.name, milliseconds(1)));

  ASSERT_TRUE(recorder_.Await(Kind::kExited, ps.name).has_value());
  ASSERT_OK(backend_->Acknowledge(ps.name));
  EXPECT_THAT(others_->Stopped(), testing::ElementsAre(ps.name));
  EXPECT_TRUE(others_->Unacknowledged().empty());
}

TEST_F(AttachedBackendTest, CountsAWorkerAsKilledWhenItsProcessDisconnects) {
  ASSERT_OK(backend_->Launch(Worker(0)));
  backend_->Attach(AttachmentId(1));

  backend_->Disconnect(AttachmentId(1));

  const auto exited = recorder_.Await(Kind::kExited, "iris-worker-0");
  ASSERT_TRUE(exited.has_value());
  EXPECT_EQ(exited->cause.kind, job::ExitCause::Kind::kKilled);
  EXPECT_THAT(exited->cause.message, testing::HasSubstr("disconnected"));
}

TEST_F(AttachedBackendTest, KeepsTheExitThatAProcessReportedBeforeItDisconnected) {
  ASSERT_OK(backend_->Launch(Worker(0)));
  backend_->Attach(AttachmentId(1));

  backend_->ReportExit("iris-worker-0", CauseOfExit(0));
  backend_->Disconnect(AttachmentId(1));
  ASSERT_OK(backend_->Launch(Worker(1)));

  ASSERT_TRUE(recorder_.Await(Kind::kPending, "iris-worker-1").has_value());
  const auto exited = recorder_.Await(Kind::kExited, "iris-worker-0");
  ASSERT_TRUE(exited.has_value());
  EXPECT_EQ(exited->cause.kind, job::ExitCause::Kind::kSucceeded);
  EXPECT_EQ(std::ranges::count(recorder_.Events(), Kind::kExited, &job::ReplicaEvent::kind), 1);
}

TEST_F(AttachedBackendTest, GivesNoWorkerToAProcessThatDisconnectedWhileItWaited) {
  EXPECT_EQ(backend_->Attach(AttachmentId(1)), 1U);
  backend_->Disconnect(AttachmentId(1));

  ASSERT_OK(backend_->Launch(Worker(0)));
  EXPECT_EQ(backend_->Attach(AttachmentId(2)), 0U);

  EXPECT_EQ(notices_.Await(0).attachment, AttachmentId(2));
}

TEST_F(AttachedBackendTest, WithdrawsAWorkerThatNoProcessHas) {
  ASSERT_OK(backend_->Launch(Worker(0)));

  ASSERT_OK(backend_->Stop("iris-worker-0", milliseconds(60'000)));

  const auto exited = recorder_.Await(Kind::kExited, "iris-worker-0");
  ASSERT_TRUE(exited.has_value());
  EXPECT_EQ(exited->cause.kind, job::ExitCause::Kind::kKilled);
  EXPECT_EQ(backend_->Attach(AttachmentId(1)), 1U) << "the worker is gone";
}

TEST_F(AttachedBackendTest, TellsAProcessOnceToStop) {
  ASSERT_OK(backend_->Launch(Worker(0)));
  backend_->Attach(AttachmentId(1));

  ASSERT_OK(backend_->Stop("iris-worker-0", milliseconds(60'000)));
  ASSERT_OK(backend_->Stop("iris-worker-0", milliseconds(60'000)));

  const AttachedBackend::Notice stop = notices_.Await(1);
  EXPECT_EQ(stop.kind, NoticeKind::kStop);
  EXPECT_EQ(stop.grace, milliseconds(60'000));
  EXPECT_EQ(notices_.size(), 2U);
}

TEST_F(AttachedBackendTest, TellsAProcessThatDidNotStopInTimeThatItsWorkerHasEnded) {
  ASSERT_OK(backend_->Launch(Worker(0)));
  backend_->Attach(AttachmentId(1));

  ASSERT_OK(backend_->Stop("iris-worker-0", milliseconds(1)));

  EXPECT_EQ(notices_.Await(2).kind, NoticeKind::kEnded);
  const auto exited = recorder_.Await(Kind::kExited, "iris-worker-0");
  ASSERT_TRUE(exited.has_value());
  EXPECT_EQ(exited->cause.signal, SIGKILL);
}

TEST_F(AttachedBackendTest, ReportsItsWorkersToANewWatcherBeforeSynced) {
  ASSERT_OK(backend_->Launch(Worker(0)));
  ASSERT_OK(backend_->Launch({.name = "iris-ps-0", .role = job::Role::kPs}));
  EventRecorder second;

  backend_->Watch(second.Watcher());

  ASSERT_TRUE(second.Await(Kind::kSynced).has_value());
  std::vector<std::string> names;
  for (const job::ReplicaEvent& event : second.Events()) {
    if (event.kind == Kind::kSynced) break;
    names.push_back(event.name);
  }
  EXPECT_THAT(names, testing::ElementsAre("iris-worker-0", "iris-ps-0"));
  backend_.reset();  // before the recorder
}

// Its events are those that the test sends to one of its watchers.
class SilentBackend final : public Backend {
 public:
  explicit SilentBackend(std::vector<EventDispatcher::Watcher>& watchers) : watchers_(watchers) {}
  Status Launch(const job::ReplicaSpec&) override { return Ok(); }
  Status Stop(const std::string&, milliseconds) override { return Ok(); }
  void Watch(EventDispatcher::Watcher on_event) override { watchers_.push_back(on_event); }
  Status Acknowledge(const std::string&) override { return Ok(); }
  Result<LogPiece> Logs(const std::string&, int64_t, int64_t) override { return LogPiece{}; }
  Result<std::string> AddressOf(job::Role, int) override { return std::string(); }

 private:
  std::vector<EventDispatcher::Watcher>& watchers_;
};

TEST(AttachedBackend, ReportsNoLateEventOfAnEarlierWatch) {
  std::vector<EventDispatcher::Watcher> watchers;
  EventRecorder recorder;
  AttachedBackend backend(std::make_unique<SilentBackend>(watchers));
  backend.Watch(recorder.Watcher());
  backend.Watch(recorder.Watcher());

  watchers.at(0)({.name = "iris-ps-0", .kind = Kind::kRunning});
  watchers.at(1)({.kind = Kind::kSynced});

  ASSERT_TRUE(recorder.Await(Kind::kSynced).has_value());
  EXPECT_EQ(recorder.Events().size(), 1U);
}

TEST_F(AttachedBackendTest, SaysWhereTheOutputOfAWorkerIs) {
  ASSERT_OK(backend_->Launch(Worker(0)));

  EXPECT_THAT(backend_->Logs("iris-worker-0", 0, 100), StatusIs(Code::kFailedPrecondition));
  EXPECT_TRUE(backend_->HasWorker("iris-worker-0"));
  EXPECT_FALSE(backend_->HasWorker("iris-worker-1"));
}

}  // namespace
}  // namespace edl::backend
