#include "backend/local/local_backend.h"

#include <csignal>
#include <cstdlib>

#include <gmock/gmock.h>
#include <sys/socket.h>

#include "backend/exit_cause.h"
#include "backend/local/agent_protocol.h"
#include "backend/local/testing/local_job.h"
#include "backend/testing/conformance.h"
#include "base/testing/await.h"
#include "base/testing/status_matchers.h"

namespace edl::backend::local {
namespace {

using Kind = job::ReplicaEvent::Kind;

// An agent and its backend. The test acts as the master.
class LocalSubject final : public ConformanceSubject {
 public:
  explicit LocalSubject(Isolation isolation) { job_.options().at_most = isolation; }
  ~LocalSubject() override {
    backend_.reset();
    if (!agent_.has_value()) return;
    // Twice, to kill replicas that ignore SIGTERM without waiting.
    EXPECT_EQ(agent_->Shutdown(), Ok());
    EXPECT_EQ(agent_->Shutdown(), Ok());
    EXPECT_OK(agent_->Wait());
  }

  Status Start() override {
    EDL_ASSIGN_OR_RETURN(AgentHandle agent, StartAgent(job_.options()));
    agent_.emplace(std::move(agent));
    EDL_ASSIGN_OR_RETURN(backend_, LocalBackend::Connect(job_.job_dir()));
    return Ok();
  }
  Backend& backend() override { return *backend_; }
  LocalJob& job() { return job_; }
  std::vector<std::string> ThatRuns() override { return {"sleep", "1000"}; }
  std::vector<std::string> ThatIgnoresTerm() override {
    return {"/bin/sh", "-c", "trap '' TERM; sleep 1000; sleep 1000"};
  }
  std::vector<std::string> ThatExits(int code) override {
    return Shell("exit " + std::to_string(code));
  }
  std::vector<std::string> ThatDiesOf(int signal) override {
    return Shell(fmt::format("kill -{} $$", signal));
  }
  std::vector<std::string> ThatPrints(const std::string& text) override {
    return {"printf", "%s", text};
  }
  std::vector<std::string> ThatCannotStart() override { return {"/no/such/program"}; }
  void KillFromOutside(const job::ReplicaEvent& running, int signal) override {
    EXPECT_EQ(kill(static_cast<pid_t>(running.process_id), signal), 0);
  }

 private:
  LocalJob job_;
  std::optional<AgentHandle> agent_;
  std::unique_ptr<LocalBackend> backend_;
};

MakeSubject Local(Isolation isolation) {
  return [isolation] { return std::make_unique<LocalSubject>(isolation); };
}

INSTANTIATE_TEST_SUITE_P(LocalInNamespaces, BackendConformance,
                         testing::Values(Local(Isolation::kNamespaces)));
INSTANTIATE_TEST_SUITE_P(LocalPlain, BackendConformance, testing::Values(Local(Isolation::kNone)));

class LocalBackendTest : public testing::TestWithParam<Isolation> {
 protected:
  LocalBackendTest() : subject_(GetParam()) {}
  void SetUp() override {
    ASSERT_OK(subject_.Start());
    backend().Watch(recorder_.Watcher());
  }
  Backend& backend() { return subject_.backend(); }
  LocalJob& job() { return subject_.job(); }

  job::ReplicaEvent RunToExit(job::ReplicaSpec spec) {
    EXPECT_EQ(backend().Launch(spec), Ok());
    const auto exited = recorder_.Await(Kind::kExited, spec.name);
    EXPECT_TRUE(exited.has_value());
    return exited.value_or(job::ReplicaEvent{});
  }

  EventRecorder recorder_;  // outlives the backend that calls it
  LocalSubject subject_;
};

INSTANTIATE_TEST_SUITE_P(InNamespaces, LocalBackendTest, testing::Values(Isolation::kNamespaces));
INSTANTIATE_TEST_SUITE_P(Plain, LocalBackendTest, testing::Values(Isolation::kNone));

TEST_P(LocalBackendTest, GivesTheSpecsEnvironmentOverTheInheritedOne) {
  RunToExit({.name = "job-worker-0",
             .command = Shell("echo $GREETING; echo $HOME; pwd"),
             .env = {{"GREETING", "good 'day'"}, {"HOME", "/elsewhere"}}});

  EXPECT_EQ(job().ReadLogOf("job-worker-0"),
            "good 'day'\n/elsewhere\n" + std::filesystem::current_path().string() + "\n");
}

TEST_P(LocalBackendTest, RunsEachReplicaInASessionOfItsOwn) {
  RunToExit({.name = "job-worker-0",
             .command = Shell("read pid name state parent group session rest < /proc/$$/stat;"
                              "test $session = $$ && test $group = $$ && echo alone")});

  EXPECT_EQ(job().ReadLogOf("job-worker-0"), "alone\n");
}

TEST_P(LocalBackendTest, EndsWhatAReplicaLeavesBehindBeforeItTellsTheExit) {
  const std::string word = UniqueWord();
  const std::string pipe = (job().path() / "pipe").string();
  const std::string orphan =
      fmt::format("setsid env -i /bin/sh -c 'echo up > {}; sleep 1000; : {}'", pipe, word);

  RunToExit({.name = "job-worker-0",
             .command = Shell(
                 fmt::format("mkfifo {0}; {1} & read word < {0}; echo $word", pipe, orphan))});

  EXPECT_EQ(job().ReadLogOf("job-worker-0"), "up\n");
  EXPECT_EQ(Processes::With(word).size(), 0);
}

TEST_P(LocalBackendTest, EndsAReplicaWhoseShimIsKilled) {
  const std::string word = UniqueWord();
  ASSERT_EQ(backend().Launch({.name = "job-worker-0", .command = Shell("sleep 1000; : " + word)}),
            Ok());
  const auto running = recorder_.Await(Kind::kRunning, "job-worker-0");
  ASSERT_TRUE(running.has_value());
  const Processes replica = Processes::With(word);
  const Result<std::string> stat = ReadFile(fmt::format("/proc/{}/stat", running->process_id));
  ASSERT_OK(stat);
  const pid_t shim = std::stoi(stat->substr(stat->rfind(')') + 4));

  kill(shim, SIGKILL);

  const auto exited = recorder_.Await(Kind::kExited, "job-worker-0");
  ASSERT_TRUE(exited.has_value());
  EXPECT_EQ(exited->cause.kind, job::ExitCause::Kind::kKilled);
  EXPECT_OK(replica.AwaitEnd());
}

TEST_P(LocalBackendTest, RecognisesTheMemoryLimitByTheKernelsWord) {
  // One line of 100 MB, which tail holds in memory.
  const job::ReplicaEvent exited =
      RunToExit({.name = "job-worker-0",
                 .command = Shell("head -c 100000000 /dev/zero | tail -n 1 > /dev/null"),
                 .memory_limit_bytes = int64_t{32} << 20});
  const auto agent_log = ReadFile(job().job_dir() / "logs" / "agent.log");
  ASSERT_OK(agent_log);
  if (agent_log->find("are not applied") != std::string::npos) {
    GTEST_SKIP() << "this user may not limit memory here";
  }

  EXPECT_EQ(exited.cause.kind, job::ExitCause::Kind::kOutOfMemory) << exited.cause.message;
}

TEST_P(LocalBackendTest, AnswersGarbageAndGoesOn) {
  Result<FileDescriptor> raw = ConnectToAgent(job().job_dir());
  ASSERT_OK(raw);
  ASSERT_EQ(SendAll(raw->get(), "\x01\xff{]\n{\"id\":9,\"op\":\"launch\",\"spec\":{}}\n"), Ok());
  const timeval timeout{.tv_sec = kTimeout.count(), .tv_usec = 0};
  setsockopt(raw->get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  LineReader reader;
  std::vector<Message> replies;
  while (replies.size() < 2) {
    std::array<char, 4096> buffer{};
    const ssize_t got = recv(raw->get(), buffer.data(), buffer.size(), 0);
    ASSERT_GT(got, 0) << "the agent sent " << replies.size() << " of 2 replies";
    ASSERT_EQ(reader.Append({buffer.data(), static_cast<size_t>(got)}), Ok());
    while (const auto line = reader.NextLine()) replies.push_back(ParseMessage(*line).value());
  }

  EXPECT_THAT(replies[0].status, StatusIs(Code::kInvalidArgument));
  EXPECT_THAT(replies[1].status, StatusIs(Code::kInvalidArgument));
  EXPECT_EQ(replies[1].id, 9);
  EXPECT_OK(backend().AddressOf(job::Role::kPs, 0));
}

TEST_P(LocalBackendTest, LeavesNothingOfALaunchThatTimedOut) {
  const std::string word = UniqueWord();
  Result<std::unique_ptr<LocalBackend>> impatient = LocalBackend::Connect(
      job().job_dir(), {.timeout = std::chrono::milliseconds(50), .on_lost = nullptr});
  ASSERT_OK(impatient);
  const Result<AgentProcess> agent = FindAgent(job().job_dir());
  ASSERT_OK(agent);
  kill(agent->process_id, SIGSTOP);
  // The signal is delivered when the agent is next scheduled.
  ASSERT_OK(AwaitPolling("the SIGSTOP of the agent",
                         [&] { return FindAgent(job().job_dir())->stopped; }));

  const Status launched =
      (*impatient)->Launch({.name = "job-worker-9", .command = Shell("sleep 1000; : " + word)});
  kill(agent->process_id, SIGCONT);

  EXPECT_THAT(launched, StatusIs(Code::kDeadlineExceeded));
  EXPECT_TRUE(recorder_.Await(Kind::kExited, "job-worker-9").has_value());
  EXPECT_EQ(Processes::With(word).size(), 0);
  EXPECT_FALSE(FindAgent(job().job_dir())->stopped);
}

TEST_P(LocalBackendTest, RefusesALaunchThatIsTooLongAndGoesOn) {
  const Status launched =
      backend().Launch({.name = "job-worker-9", .command = {"true", std::string(5 << 20, 'x')}});

  EXPECT_THAT(launched, StatusIs(Code::kInvalidArgument));
  EXPECT_THAT(launched.message(), testing::HasSubstr("shorten --envs"));
  EXPECT_OK(backend().AddressOf(job::Role::kPs, 0));
}

TEST_P(LocalBackendTest, TellsThatTheConnectionIsLost) {
  Signpost signpost(job().path() / "lost");
  Result<std::unique_ptr<LocalBackend>> watching = LocalBackend::Connect(
      job().job_dir(),
      {.on_lost = [&] { (void)!system(signpost.Pass("lost").c_str()); }});  // NOLINT: a test
  ASSERT_OK(watching);

  ASSERT_EQ(ShutdownAgent(job().job_dir()), Ok());

  EXPECT_EQ(signpost.Await(), "lost");
}

TEST_P(LocalBackendTest, RefusesNamesThatAreNoFileNames) {
  for (const char* name : {"", "../worker", "a/b", ".hidden", "master", "agent"}) {
    EXPECT_THAT(backend().Launch({.name = name, .command = {"true"}}),
                StatusIs(Code::kInvalidArgument))
        << name;
  }
}

}  // namespace
}  // namespace edl::backend::local
