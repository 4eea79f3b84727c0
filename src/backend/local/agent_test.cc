#include "backend/local/agent.h"

#include <csignal>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/local/local_backend.h"
#include "backend/local/testing/local_job.h"
#include "backend/testing/event_recorder.h"
#include "base/testing/status_matchers.h"

namespace edl::backend::local {
namespace {

namespace fs = std::filesystem;
using Kind = job::ReplicaEvent::Kind;
using testing::HasSubstr;
using testing::StartsWith;

constexpr uid_t kSomeUser = 54321;

Result<std::unique_ptr<LocalBackend>> Connect(const LocalJob& job) {
  return LocalBackend::Connect(job.job_dir());
}

class AgentTest : public testing::TestWithParam<Isolation> {
 protected:
  AgentTest() { job_.options().at_most = GetParam(); }

  Result<AgentHandle> Start() {
    Result<AgentHandle> agent = StartAgent(job_.options());
    if (agent.ok()) {
      EXPECT_EQ(agent->isolation(), GetParam());
    }
    return agent;
  }

  // A script that starts a grandchild in its own session, which passes "up" when it runs.
  static std::string ScriptWithAGrandchild(const Signpost& signpost, const std::string& word) {
    return fmt::format("setsid env -i /bin/sh -c '{}; sleep 1000; : {}' & sleep 1000; : {}",
                       signpost.Pass("up"), word, word);
  }

  LocalJob job_;
};

INSTANTIATE_TEST_SUITE_P(InNamespaces, AgentTest, testing::Values(Isolation::kNamespaces));
INSTANTIATE_TEST_SUITE_P(Plain, AgentTest, testing::Values(Isolation::kNone));

TEST_P(AgentTest, ExitsWithTheMastersCodeAndLeavesNoProcess) {
  const std::string word = UniqueWord();
  Signpost signpost(job_.path() / "signpost");
  job_.options().master_command =
      Shell("read line < " + (job_.path() / "go").string() + "; exit 1");
  ASSERT_EQ(mkfifo((job_.path() / "go").c_str(), 0600), 0);
  ASSERT_OK_AND_ASSIGN(AgentHandle agent, Start());
  ASSERT_OK_AND_ASSIGN(auto backend, Connect(job_));
  ASSERT_EQ(backend->Launch(
                {.name = "job-ps-0", .command = Shell(ScriptWithAGrandchild(signpost, word))}),
            Ok());
  ASSERT_EQ(signpost.Await(), "up");
  const Processes left = Processes::With(word);
  ASSERT_GE(left.size(), 2);

  std::ofstream(job_.path() / "go") << "go\n";
  const Result<JobEnd> end = agent.Wait();

  ASSERT_OK(end);
  EXPECT_EQ(end->exit_code, 1);
  EXPECT_EQ(Processes::With(word).size(), 0);
  EXPECT_FALSE(fs::exists(job_.job_dir() / "agent.sock"));
  EXPECT_FALSE(IsAgentRunning(job_.job_dir()).value());
  EXPECT_THAT(backend->AddressOf(job::Role::kPs, 0), StatusIs(Code::kUnavailable));
  EXPECT_THAT(LocalBackend::Connect(job_.job_dir()), StatusIs(Code::kNotFound));
}

TEST_P(AgentTest, LeavesNoProcessWhenItsClientIsKilled) {
  const std::string word = UniqueWord();
  Signpost signpost(job_.path() / "signpost");
  Client client(job_.options());
  ASSERT_NE(client.agent(), 0);
  ASSERT_OK_AND_ASSIGN(auto backend, Connect(job_));
  ASSERT_EQ(backend->Launch(
                {.name = "job-worker-0", .command = Shell(ScriptWithAGrandchild(signpost, word))}),
            Ok());
  ASSERT_EQ(signpost.Await(), "up");
  const Processes processes = Processes::With(word);
  ASSERT_GE(processes.size(), 2) << "the replica and its grandchild";

  client.Kill();

  EXPECT_OK(processes.AwaitEnd());
  EXPECT_OK(AwaitEndOf(client.agent()));
  EXPECT_FALSE(IsAgentRunning(job_.job_dir()).value());
}

TEST_P(AgentTest, LeavesNoProcessWhenItIsKilled) {
  const std::string word = UniqueWord();
  Signpost signpost(job_.path() / "signpost");
  ASSERT_OK_AND_ASSIGN(AgentHandle agent, Start());
  ASSERT_OK_AND_ASSIGN(auto backend, Connect(job_));
  ASSERT_EQ(backend->Launch(
                {.name = "job-worker-0", .command = Shell(ScriptWithAGrandchild(signpost, word))}),
            Ok());
  ASSERT_EQ(signpost.Await(), "up");
  const Processes processes = Processes::With(word);

  kill(agent.process_id(), SIGKILL);

  EXPECT_OK(processes.AwaitEnd());
  EXPECT_THAT(agent.Wait(), StatusIs(Code::kUnavailable));
}

TEST_P(AgentTest, RestartsTheMasterAtItsAddressAndLeavesReplicasAlone) {
  const std::string word = UniqueWord();
  Signpost signpost(job_.path() / "signpost");
  // "$0" is the --port=N that the agent appends.
  job_.options().master_command =
      Shell(fmt::format("{}; sleep 1000; : {}", signpost.Pass("$0"), word));
  ASSERT_OK_AND_ASSIGN(AgentHandle agent, Start());
  const std::string address = ReadFile(job_.job_dir() / "master.addr").value();
  const std::string port = "--port=" + address.substr(address.find(':') + 1);
  EXPECT_EQ(agent.master_address(), address);
  ASSERT_EQ(signpost.Await(), port);
  EventRecorder before;
  ASSERT_OK_AND_ASSIGN(auto backend, Connect(job_));
  backend->Watch(before.Watcher());
  ASSERT_EQ(backend->Launch({.name = "job-worker-0", .command = {"sleep", "1000"}}), Ok());
  ASSERT_EQ(backend->Launch({.name = "job-worker-1", .command = Shell("exit 3")}), Ok());
  const auto running = before.Await(Kind::kRunning, "job-worker-0");
  ASSERT_TRUE(running.has_value() && before.Await(Kind::kExited, "job-worker-1").has_value());
  backend.reset();

  for (int killed = 0; killed < 3; ++killed) {
    const Processes master = Processes::With(word);
    ASSERT_GE(master.size(), 1);
    master.Kill(SIGKILL);
    ASSERT_EQ(signpost.Await(), port);
  }

  EventRecorder after;
  ASSERT_OK_AND_ASSIGN(backend, Connect(job_));
  backend->Watch(after.Watcher());
  ASSERT_TRUE(after.Await(Kind::kSynced).has_value());
  const auto still = after.Await(Kind::kRunning, "job-worker-0");
  ASSERT_TRUE(still.has_value());
  EXPECT_EQ(still->process_id, running->process_id);
  const auto exited = after.Await(Kind::kExited, "job-worker-1");
  ASSERT_TRUE(exited.has_value());
  EXPECT_EQ(exited->cause.exit_code, 3);
}

TEST_P(AgentTest, ChoosesAnotherPortWhenTheFirstIsTakenAtTheStart) {
  Signpost signpost(job_.path() / "signpost");
  // "$0" is the --port=N that the agent appends; 4 is kPortTakenCode.
  const std::string mark = (job_.path() / "tried").string();
  job_.options().master_command = Shell(fmt::format(
      "{}; [ -e {} ] && exec sleep 1000; : > {}; exit 4", signpost.Pass("$0"), mark, mark));
  ASSERT_OK_AND_ASSIGN(AgentHandle agent, Start());

  const std::string first = signpost.Await();
  const std::string second = signpost.Await();

  EXPECT_NE(first, second);
  const std::string address = ReadFile(job_.job_dir() / "master.addr").value();
  EXPECT_EQ(second, "--port=" + address.substr(address.find(':') + 1));
}

TEST_P(AgentTest, WaitsForTheMastersPortWhileReplicasRun) {
  Signpost signpost(job_.path() / "signpost");
  // The first master runs until it is killed, two find the port taken, the fourth runs.
  const std::string count = (job_.path() / "count").string();
  job_.options().master_command = Shell(fmt::format(
      "echo >> {0}; n=$(wc -l < {0}); {1}; case $n in 1|4) exec sleep 1000;; esac; exit 4", count,
      signpost.Pass("$0 $n $ELASTICDL_HOST_PROCESS_ID")));
  job_.options().port_pause = std::chrono::milliseconds(20);
  ASSERT_OK_AND_ASSIGN(AgentHandle agent, Start());
  const std::string first = signpost.Await();
  ASSERT_OK_AND_ASSIGN(const auto first_backend, Connect(job_));
  ASSERT_OK(first_backend->Launch({.name = "w-0", .command = {"sleep", "1000"}}));

  kill(std::stoi(first.substr(first.rfind(' ') + 1)), SIGKILL);

  const std::string port = first.substr(0, first.find(' '));
  for (const int number : {2, 3, 4}) {
    EXPECT_THAT(signpost.Await(), StartsWith(fmt::format("{} {}", port, number)))
        << "the same port";
  }
  EventRecorder events;
  ASSERT_OK_AND_ASSIGN(const auto backend, Connect(job_));
  backend->Watch(events.Watcher());
  EXPECT_TRUE(events.Await(Kind::kRunning, "w-0").has_value());
}

TEST_P(AgentTest, SaysThatTheMastersPortStaysTaken) {
  job_.options().master_command = Shell("exit 4");
  job_.options().port_tries = 3;
  job_.options().port_pause = std::chrono::milliseconds(1);
  ASSERT_OK_AND_ASSIGN(AgentHandle agent, Start());

  const Result<JobEnd> end = agent.Wait();

  ASSERT_OK(end);
  EXPECT_EQ(end->exit_code, 1);
  EXPECT_THAT(end->reason, HasSubstr("another program listens on 127.0.0.1:"));
}

TEST_P(AgentTest, TellsTheMasterTheProcessIdThatUsersSee) {
  Signpost signpost(job_.path() / "signpost");
  job_.options().master_command =
      Shell(fmt::format("{}; sleep 1000; :", signpost.Pass("$ELASTICDL_HOST_PROCESS_ID")));
  ASSERT_OK_AND_ASSIGN(AgentHandle agent, Start());

  const Result<std::string> command = ReadFile(fmt::format("/proc/{}/cmdline", signpost.Await()));

  ASSERT_OK(command);
  EXPECT_THAT(*command, HasSubstr("--port="));
}

TEST_P(AgentTest, GivesUpOnAMasterThatKeepsDying) {
  const std::string word = UniqueWord();
  const fs::path told = job_.path() / "told";
  const fs::path go = job_.path() / "go";
  Signpost signpost(job_.path() / "signpost");
  // The first master dies when a replica runs, the others immediately.
  ASSERT_EQ(mkfifo(go.c_str(), 0600), 0);
  job_.options().master_command =
      Shell(fmt::format("[ -e {0} ] && read line < {0} && rm {0}; kill -SEGV $$", go.string()));
  ASSERT_OK_AND_ASSIGN(AgentHandle agent, Start());
  const std::string script =
      fmt::format("trap 'sleep 0.3; echo > {}; exit' TERM; {}; sleep 1000 & wait; : {}",
                  told.string(), signpost.Pass("up"), word);
  ASSERT_OK_AND_ASSIGN(const auto backend, Connect(job_));
  ASSERT_OK(backend->Launch({.name = "w-0", .command = Shell(script)}));
  ASSERT_EQ(signpost.Await(), "up");
  std::ofstream(go) << "go\n";

  const Result<JobEnd> end = agent.Wait();

  ASSERT_OK(end);
  EXPECT_EQ(end->exit_code, 1);
  EXPECT_THAT(end->reason, HasSubstr("died 10 times in a row"));
  EXPECT_THAT(end->reason, HasSubstr("SIGSEGV"));
  EXPECT_TRUE(fs::exists(told)) << "the replica did not get time to end";
  EXPECT_EQ(Processes::With(word).size(), 0);
}

TEST_P(AgentTest, SendsSigtermToTheMasterWhenShutDown) {
  Signpost signpost(job_.path() / "signpost");
  job_.options().master_command = Shell(fmt::format(
      "trap 'exit 3' TERM; {}; while :; do sleep 1000 & wait; done", signpost.Pass("ready")));
  ASSERT_OK_AND_ASSIGN(AgentHandle agent, Start());
  ASSERT_EQ(signpost.Await(), "ready");

  ASSERT_EQ(agent.Shutdown(), Ok());
  const Result<JobEnd> end = agent.Wait();

  ASSERT_OK(end);
  EXPECT_EQ(end->exit_code, 3);
  EXPECT_EQ(end->reason, "stopped by the user");
}

TEST_P(AgentTest, KillsWithoutGraceWhenShutDownTwice) {
  Signpost signpost(job_.path() / "signpost");
  job_.options().master_grace = std::chrono::hours(1);
  job_.options().replica_grace = std::chrono::hours(1);
  job_.options().master_command =
      Shell(fmt::format("trap '' TERM; {}; while :; do sleep 1000; done", signpost.Pass("ready")));
  ASSERT_OK_AND_ASSIGN(AgentHandle agent, Start());
  ASSERT_EQ(signpost.Await(), "ready");

  ASSERT_EQ(agent.Shutdown(), Ok());
  ASSERT_EQ(agent.Shutdown(), Ok());
  const Result<JobEnd> end = agent.Wait();

  ASSERT_OK(end);
  EXPECT_EQ(end->exit_code, 3);
}

TEST_P(AgentTest, OutlivesItsClientWhenDetached) {
  job_.options().detach = true;
  Client client(job_.options());
  ASSERT_NE(client.agent(), 0);

  client.Kill();

  ASSERT_OK_AND_ASSIGN(auto backend, Connect(job_));
  EXPECT_OK(backend->AddressOf(job::Role::kWorker, 0));
  EXPECT_TRUE(IsAgentRunning(job_.job_dir()).value());
  EXPECT_EQ(ShutdownAgent(job_.job_dir()), Ok());
  EXPECT_OK(AwaitEndOf(client.agent()));
  EXPECT_THAT(ShutdownAgent(job_.job_dir()), StatusIs(Code::kNotFound));
}

TEST_P(AgentTest, OutlivesItsHandleWhenDetachedLater) {
  pid_t process = 0;
  {
    ASSERT_OK_AND_ASSIGN(AgentHandle agent, Start());
    process = agent.process_id();
    ASSERT_EQ(agent.Detach(), Ok());
  }

  ASSERT_OK_AND_ASSIGN(const auto backend, Connect(job_));
  EXPECT_OK(backend->AddressOf(job::Role::kWorker, 0));
  EXPECT_EQ(ShutdownAgent(job_.job_dir()), Ok());
  EXPECT_OK(AwaitEndOf(process));
}

TEST_P(AgentTest, RefusesAJobThatRunsAlready) {
  ASSERT_OK_AND_ASSIGN(AgentHandle agent, Start());

  const Result<AgentHandle> second = StartAgent(job_.options());

  EXPECT_THAT(second, StatusIs(Code::kAlreadyExists));
  EXPECT_THAT(second.status().message(), HasSubstr(job_.job_dir().string()));
  ASSERT_OK_AND_ASSIGN(const auto backend, Connect(job_));
  EXPECT_OK(backend->AddressOf(job::Role::kWorker, 0)) << "the first job still runs";
}

TEST_P(AgentTest, GivesJobsDifferentPorts) {
  LocalJob other;
  other.options().at_most = GetParam();
  ASSERT_OK_AND_ASSIGN(AgentHandle agent, Start());
  Result<AgentHandle> other_agent = StartAgent(other.options());
  ASSERT_OK(other_agent);
  std::set<std::string> addresses = {agent.master_address(), other_agent->master_address()};

  ASSERT_OK_AND_ASSIGN(const auto backend, Connect(job_));
  ASSERT_OK_AND_ASSIGN(const auto other_backend, Connect(other));
  for (int index = 0; index < 5; ++index) {
    for (LocalBackend* each : {backend.get(), other_backend.get()}) {
      ASSERT_OK_AND_ASSIGN(const std::string address, each->AddressOf(job::Role::kWorker, index));
      addresses.insert(address);
    }
  }

  EXPECT_EQ(addresses.size(), 12);
}

TEST_P(AgentTest, RotatesLogsAndKeepsOffsets) {
  job_.options().log_limit_bytes = 1000;
  ASSERT_OK_AND_ASSIGN(AgentHandle agent, Start());
  ASSERT_OK_AND_ASSIGN(auto backend, Connect(job_));
  EventRecorder recorder;
  backend->Watch(recorder.Watcher());

  ASSERT_EQ(backend->Launch({.name = "job-worker-0", .command = {"seq", "-w", "1", "1000"}}), Ok());
  ASSERT_TRUE(recorder.Await(Kind::kExited, "job-worker-0").has_value());

  const auto piece = backend->Logs("job-worker-0", 4500, 10);
  ASSERT_OK(piece);
  EXPECT_EQ(piece->text, "0901\n0902\n");
  EXPECT_EQ(backend->Logs("job-worker-0", -5, 10)->text, "1000\n");
  EXPECT_EQ(backend->Logs("job-worker-0", -5, 10)->next_offset, 5000);
  backend.reset();
}

// Expects that nothing was started: the folder can be used again.
void ExpectNothingStarted(const LocalJob& job) {
  EXPECT_FALSE(fs::exists(job.job_dir() / "agent.sock"));
  const Result<bool> running = IsAgentRunning(job.job_dir());
  EXPECT_TRUE(!running.ok() || !*running);
}

TEST_P(AgentTest, SaysThatTheMasterCannotBeStarted) {
  job_.options().master_command = {"/no/such/master"};

  const Result<AgentHandle> agent = StartAgent(job_.options());

  EXPECT_THAT(agent, StatusIs(Code::kNotFound));
  EXPECT_THAT(agent.status().message(), HasSubstr("/no/such/master"));
  ExpectNothingStarted(job_);
}

TEST_P(AgentTest, SaysThatTheJobFolderIsMissing) {
  job_.options().job_dir = job_.path() / "nowhere";

  const Result<AgentHandle> agent = StartAgent(job_.options());

  EXPECT_THAT(agent, StatusIs(Code::kNotFound));
  EXPECT_THAT(agent.status().message(), HasSubstr("nowhere"));
}

TEST_P(AgentTest, SaysThatTheDiskIsFull) {
  if (geteuid() != 0) GTEST_SKIP() << "only root mounts a small disk";
  const std::string failure = InChild([this]() -> std::string {
    if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) ||
        mount("tmpfs", job_.job_dir().c_str(), "tmpfs", 0, "size=16k,mode=0700") != 0) {
      return "no small disk";
    }
    std::ofstream(job_.job_dir() / "ballast") << std::string(64 << 10, 'x');
    const Result<AgentHandle> agent = StartAgent(job_.options());
    if (agent.status().code() != Code::kResourceExhausted) return agent.status().ToString();
    return IsAgentRunning(job_.job_dir()).value() ? "still running" : "";
  });

  EXPECT_EQ(failure, "");
}

TEST_P(AgentTest, NamesAFolderThatIsNotWritable) {
  if (geteuid() != 0) GTEST_SKIP() << "needs another user";
  ASSERT_EQ(chown(job_.path().c_str(), kSomeUser, kSomeUser), 0);
  ASSERT_EQ(chown(job_.job_dir().c_str(), kSomeUser, kSomeUser), 0);
  ASSERT_EQ(mkdir((job_.job_dir() / "agent.lock").c_str(), 0700), 0);
  const std::string message = InChild(
      [this] { return std::string(StartAgent(job_.options()).status().message()); }, kSomeUser);

  EXPECT_THAT(message, HasSubstr("agent.lock"));
  ExpectNothingStarted(job_);
}

// --- Volumes ---

class AgentVolumesTest : public testing::Test {
 protected:
  AgentVolumesTest() {
    fs::create_directories(job_.path() / "host" / "sub");
    std::ofstream(job_.path() / "host" / "file") << "from the host\n";
    std::ofstream(job_.path() / "host" / "sub" / "file") << "from below\n";
    volume_ = {.host_path = (job_.path() / "host").string(),
               .mount_path = (job_.path() / "mount" / "point").string()};
  }

  Status Start() {
    job_.options().volumes = {volume_};
    Result<AgentHandle> agent = StartAgent(job_.options());
    if (!agent.ok()) return agent.status();
    agent_.emplace(*std::move(agent));
    return Ok();
  }

  std::string OutputOf(const std::string& script) {
    EventRecorder recorder;
    const auto connected = Connect(job_);
    if (!connected.ok()) return connected.status().ToString();
    LocalBackend* backend = connected->get();
    backend->Watch(recorder.Watcher());
    EXPECT_EQ(backend->Launch({.name = "job-worker-0", .command = Shell(script)}), Ok());
    EXPECT_TRUE(recorder.Await(Kind::kExited, "job-worker-0").has_value());
    return job_.ReadLogOf("job-worker-0");
  }

  LocalJob job_;
  job::Volume volume_;
  std::optional<AgentHandle> agent_;
};

TEST_F(AgentVolumesTest, AreVisibleToReplicasOnly) {
  ASSERT_EQ(Start(), Ok());

  EXPECT_EQ(OutputOf(fmt::format("cat {0}/file; echo trained > {0}/model", volume_.mount_path)),
            "from the host\n");

  EXPECT_TRUE(fs::is_empty(volume_.mount_path)) << "the mount point is made, left and empty";
  EXPECT_EQ(ReadFile(job_.path() / "host" / "model").value(), "trained\n");
}

TEST_F(AgentVolumesTest, ShowOnlyTheSubPath) {
  volume_.sub_path = "sub";
  ASSERT_EQ(Start(), Ok());

  EXPECT_EQ(OutputOf("ls " + volume_.mount_path + "; cat " + volume_.mount_path + "/file"),
            "file\nfrom below\n");
}

TEST_F(AgentVolumesTest, MayBeSingleFiles) {
  volume_.host_path += "/file";
  volume_.type = job::HostPathType::kFile;
  ASSERT_EQ(Start(), Ok());

  EXPECT_EQ(OutputOf("cat " + volume_.mount_path), "from the host\n");
}

TEST_F(AgentVolumesTest, MustExistUnlessTheyMayBeCreated) {
  volume_.host_path += "/new";
  const Status missing = Start();
  EXPECT_THAT(missing, StatusIs(Code::kNotFound));
  EXPECT_THAT(missing.message(), HasSubstr("type=DirectoryOrCreate"));

  volume_.type = job::HostPathType::kDirectoryOrCreate;
  EXPECT_EQ(Start(), Ok());
  EXPECT_TRUE(fs::is_directory(volume_.host_path));
}

TEST_F(AgentVolumesTest, MustBeOfTheirType) {
  volume_.type = job::HostPathType::kFile;

  EXPECT_THAT(Start(), StatusIs(Code::kFailedPrecondition));
}

TEST_F(AgentVolumesTest, CannotBeClaims) {
  volume_ = {.claim_name = "data", .mount_path = "/data"};

  const Status status = Start();

  EXPECT_THAT(status, StatusIs(Code::kInvalidArgument));
  EXPECT_THAT(status.message(), HasSubstr("claims exist only on Kubernetes; use host_path="));
}

TEST_F(AgentVolumesTest, MustStayBelowTheirHostPath) {
  volume_.sub_path = "../elsewhere";

  EXPECT_THAT(Start(), StatusIs(Code::kInvalidArgument));
}

TEST_F(AgentVolumesTest, NeedTheRightToMount) {
  job_.options().at_most = Isolation::kNone;

  const Status status = Start();

  EXPECT_THAT(status, StatusIs(Code::kPermissionDenied));
  EXPECT_THAT(status.message(), HasSubstr("symbolic link to " + volume_.host_path));
}

TEST_F(AgentVolumesTest, WorkWithoutMountsIfALinkLeadsToThem) {
  job_.options().at_most = Isolation::kNone;
  fs::create_directory(job_.path() / "mount");
  fs::create_directory_symlink(volume_.host_path, volume_.mount_path);

  ASSERT_EQ(Start(), Ok());

  EXPECT_EQ(OutputOf("cat " + volume_.mount_path + "/file"), "from the host\n");
}

// --- A user without privileges ---

class AgentOfAUserTest : public AgentVolumesTest {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "the other tests run as such a user";
    for (const auto& entry : fs::recursive_directory_iterator(job_.path())) {
      ASSERT_EQ(chown(entry.path().c_str(), kSomeUser, kSomeUser), 0);
    }
    ASSERT_EQ(chown(job_.path().c_str(), kSomeUser, kSomeUser), 0);
    const bool may_isolate =
        InChild([] { return unshare(CLONE_NEWUSER) == 0 ? "" : "no"; }, kSomeUser).empty();
    if (!may_isolate) GTEST_SKIP() << "this machine gives users no namespaces";
  }
};

TEST_F(AgentOfAUserTest, IsolatesMountsAndKeepsTheUsersId) {
  const std::string output = InChild(
      [this]() -> std::string {
        const Status started = Start();
        if (!started.ok()) return started.ToString();
        if (agent_->isolation() != Isolation::kNamespaces) return "no namespaces";
        std::string printed = OutputOf("id -u; cat " + volume_.mount_path +
                                       "/file; test -d /proc/$$ && test $$ -lt 100 && echo inside");
        if (!agent_->Shutdown().ok() || !agent_->Wait().ok()) return "did not end";
        return printed;
      },
      kSomeUser);

  EXPECT_EQ(output, std::to_string(kSomeUser) + "\nfrom the host\ninside\n");
  EXPECT_TRUE(fs::is_empty(volume_.mount_path));
}

TEST_F(AgentOfAUserTest, LeavesNoProcessWhenItsClientIsKilled) {
  const std::string word = UniqueWord();
  Signpost signpost(job_.path() / "signpost");
  ASSERT_EQ(chown((job_.path() / "signpost").c_str(), kSomeUser, kSomeUser), 0);
  const std::string failure = InChild(
      [&]() -> std::string {
        Client client(job_.options());
        if (client.agent() == 0) return "no agent";
        const auto backend = Connect(job_);
        if (!backend.ok()) return backend.status().ToString();
        const Status launched = (*backend)->Launch(
            {.name = "job-worker-0",
             .command = Shell(fmt::format("setsid /bin/sh -c '{}; sleep 1000; : {}' & sleep 1000",
                                          signpost.Pass("up"), word))});
        if (!launched.ok()) return launched.ToString();
        if (signpost.Await() != "up") return "the grandchild did not come up";
        const Processes processes = Processes::With(word);
        client.Kill();
        for (const Status& ended : {processes.AwaitEnd(), AwaitEndOf(client.agent())}) {
          if (!ended.ok()) return ended.ToString();
        }
        return "";
      },
      kSomeUser);

  EXPECT_EQ(failure, "");
}

TEST_F(AgentOfAUserTest, ExplainsHowToCreateAMountPoint) {
  volume_.mount_path = "/edl-no-such-mount-point";

  const std::string message = InChild([this] { return Start().message(); }, kSomeUser);

  EXPECT_THAT(message, HasSubstr("sudo mkdir -p /edl-no-such-mount-point"));
}

}  // namespace
}  // namespace edl::backend::local
