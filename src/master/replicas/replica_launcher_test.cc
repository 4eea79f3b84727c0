#include "master/replicas/replica_launcher.h"

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/testing/fake_backend.h"
#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

using job::ExitCause;
using job::ReplicaEvent;
using job::Role;
using ::testing::Contains;

LaunchCommand LaunchOf(ReplicaRef replica, int index) {
  return {.name = NameOf(replica),
          .replica = replica,
          .index = index,
          .memory_bytes = 4096,
          .num_workers = 3,
          .relaunched = true};
}

const ReplicaContext kContext{
    .master_address = "127.0.0.1:23456",
    .token_file = "/jobs/iris/token",
    .master_env = {{"DATA_KEY", "k"}, {"DATA_KEY_2", "no"}, {"HOME", "/root"}}};

TEST(ReplicaSpecOf, CarriesTheEnvironmentThatClientsRead) {
  const job::ReplicaSpec spec =
      MakeReplicaSpec(LaunchOf(Chief(4), 0), WorkersOnly(3), kContext, {});

  EXPECT_EQ(spec.name, "iris-edljob-chief-4");
  EXPECT_EQ(spec.memory_limit_bytes, 4096);
  const std::map<std::string, std::string> expected = {{"MASTER_ADDR", "127.0.0.1:23456"},
                                                       {"DLROVER_MASTER_ADDR", "127.0.0.1:23456"},
                                                       {"WORKER_ID", "1000004"},
                                                       {"WORKER_TYPE", "chief"},
                                                       {"WORKER_NUM", "3"},
                                                       {"ELASTICDL_ENABLED", "true"},
                                                       {"RELAUNCHED_POD", "true"},
                                                       {"ELASTICDL_TOKEN_FILE", "/jobs/iris/token"},
                                                       {"ELASTICDL_JOB_NAME", "iris"},
                                                       {"ELASTICDL_REPLICA_ID", "4"},
                                                       {"ELASTICDL_REPLICA_INDEX", "0"}};
  for (const auto& [name, value] : expected) EXPECT_EQ(spec.env.at(name), value) << name;
  EXPECT_TRUE(spec.env.contains("MY_POD_IP"));
  EXPECT_FALSE(spec.env.contains("TF_CONFIG"));
  EXPECT_FALSE(spec.env.contains("HOME"));
}

TEST(ReplicaSpecOf, RunsOurParameterServersAndTellsWorkersWhereTheyAre) {
  job::JobSpec job = WorkersOnly(1);
  job.own_ps = true;
  job.num_ps = 2;
  const std::map<job::Role, std::vector<std::string>> addresses = {
      {job::Role::kPs, {"localhost:1", "localhost:2"}}};

  LaunchCommand launch = LaunchOf({job::Role::kPs, 5}, 1);
  launch.ps_lanes = 3;
  const job::ReplicaSpec ps = MakeReplicaSpec(launch, job, kContext, addresses);
  const job::ReplicaSpec worker = MakeReplicaSpec(LaunchOf(Worker(0), 0), job, kContext, addresses);

  EXPECT_EQ(ps.command,
            (std::vector<std::string>{
                "elasticdl", "ps", "--managed", "--port=2", "--host=localhost", "--index=1",
                "--servers=2", "--token_file=/jobs/iris/token", "--job_name=iris", "--lanes=3"}));
  EXPECT_EQ(worker.env.at("ELASTICDL_PS_ADDRS"), "localhost:1,localhost:2");
}

TEST(ReplicaSpecOf, ParameterServersOfAClusterServeMetrics) {
  job::JobSpec job = WorkersOnly(1);
  job.own_ps = true;
  job.num_ps = 1;
  job.metrics_without_token = true;
  ReplicaContext context = kContext;
  context.ps_http_port = 50003;
  const job::ReplicaSpec ps = MakeReplicaSpec(LaunchOf({job::Role::kPs, 0}, 0), job, context,
                                              {{job::Role::kPs, {"localhost:1"}}});
  EXPECT_THAT(ps.command, Contains("--http_port=50003"));
  EXPECT_THAT(ps.command, Contains("--metrics_without_token"));
}

TEST(ReplicaSpecOf, IsRefusedWhereAVariableIsTooLongForAProcess) {
  job::JobSpec job = WorkersOnly(1);
  job.own_ps = true;
  job.num_ps = 10'000;
  std::map<job::Role, std::vector<std::string>> addresses;
  for (int i = 0; i < job.num_ps; ++i) {
    addresses[job::Role::kPs].push_back(fmt::format("job-elasticdl-ps-{}:50002", i));
  }
  const Status refused =
      CheckEnvironment(MakeReplicaSpec(LaunchOf(Worker(0), 0), job, kContext, addresses));

  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_NE(refused.message().find("ELASTICDL_PS_ADDRS"), std::string::npos);
  addresses[job::Role::kPs].resize(100);
  EXPECT_EQ(CheckEnvironment(MakeReplicaSpec(LaunchOf(Worker(0), 0), job, kContext, addresses)),
            Ok());
}

TEST(ReplicaSpecOf, WritesOutputToAFileTooInACluster) {
  job::JobSpec job = WorkersOnly(1);
  job.job_command = "train";
  job.log_file_path = "/data/it's.log";
  EXPECT_EQ(MakeReplicaSpec(LaunchOf(Worker(0), 0), job, kContext, {}).command.back(),
            "set -o pipefail;train");
  job.backend = job::BackendKind::kKubernetes;

  const job::ReplicaSpec spec = MakeReplicaSpec(LaunchOf(Worker(0), 0), job, kContext, {});

  EXPECT_EQ(spec.command.back(), "set -o pipefail;(train) 2>&1 | tee \"$ELASTICDL_LOG_FILE\"");
  EXPECT_EQ(spec.env.at("ELASTICDL_LOG_FILE"), "/data/it's.log");
}

TEST(ReplicaSpecOf, TakesWholeNamesFromTheMasterAndLetsTheUserReplaceThem) {
  job::JobSpec job = WorkersOnly(1);
  job.populate_env_names = "DATA_.*Y|HOME";
  job.envs = {{"HOME", "/data"}, {"MASTER_ADDR", "elsewhere"}};

  const job::ReplicaSpec spec = MakeReplicaSpec(LaunchOf(Worker(0), 0), job, kContext, {});

  EXPECT_EQ(spec.env.at("DATA_KEY"), "k");
  EXPECT_FALSE(spec.env.contains("DATA_KEY_2"));
  EXPECT_EQ(spec.env.at("HOME"), "/data");
  EXPECT_EQ(spec.env.at("MASTER_ADDR"), "127.0.0.1:23456") << "ours is not the user's to replace";
}

// What the hands tell the loop, and with which a test waits for what must come. Thread-safe.
class Told {
 public:
  ReplicaLauncher::PostEvent post_event() {
    return [this](const ReplicaEvent& event, std::vector<std::string> last_lines) {
      const MutexLock lock(mutex_);
      events_.emplace_back(event, std::move(last_lines));
      logs_at_event_.push_back(log_);
      changed_.NotifyAll();
    };
  }
  ReplicaLauncher::PostLog post_log() {
    return [this](const std::string&, const std::string& text) {
      const MutexLock lock(mutex_);
      log_ += text;
      changed_.NotifyAll();
    };
  }

  struct Event {
    ReplicaEvent event;
    std::vector<std::string> last_lines;
    std::string log_before;  // all output that was told earlier
  };
  // The first event of that kind about `replica`; a test for which none comes fails.
  Event Await(ReplicaEvent::Kind kind, ReplicaRef replica) {
    return AwaitNamed(kind, NameOf(replica));
  }
  void AwaitSynced() { AwaitNamed(ReplicaEvent::Kind::kSynced, ""); }

 private:
  Event AwaitNamed(ReplicaEvent::Kind kind, const std::string& name) {
    const auto timeout = std::chrono::steady_clock::now() + seconds(20);
    const MutexLock lock(mutex_);
    while (true) {
      for (size_t i = 0; i < events_.size(); ++i) {
        if (events_[i].first.kind == kind && events_[i].first.name == name) {
          return {events_[i].first, events_[i].second, logs_at_event_[i]};
        }
      }
      CHECK(changed_.WaitUntil(mutex_, timeout), "an event that must come did not");
    }
  }

  Mutex mutex_;
  CondVar changed_;
  std::vector<std::pair<ReplicaEvent, std::vector<std::string>>> events_ GUARDED_BY(mutex_);
  std::vector<std::string> logs_at_event_ GUARDED_BY(mutex_);
  std::string log_ GUARDED_BY(mutex_);
};

class ReplicaLauncherTest : public ::testing::Test {
 protected:
  void Start(job::JobSpec job) {
    job_ = std::move(job);
    launcher_.Start(told_.post_event(), told_.post_log());
    told_.AwaitSynced();
  }

  Told told_;
  job::JobSpec job_ = WorkersOnly(1);
  backend::FakeBackend backend_;
  ReplicaLauncher launcher_{backend_, job_, kContext};
};

TEST_F(ReplicaLauncherTest, LaunchWhatTheCommandSays) {
  Start(WorkersOnly(1));

  launcher_.Do({LaunchOf(Worker(0), 0)});

  told_.Await(ReplicaEvent::Kind::kRunning, Worker(0));
  EXPECT_EQ(backend_.Launched().front().env.at("WORKER_ID"), "0");
}

TEST_F(ReplicaLauncherTest, PutTheAddressesOfAllSlotsIntoTfConfig) {
  Start(TensorFlowJob(2, 1, 0));

  launcher_.Do({LaunchOf(Worker(1), 1)});

  told_.Await(ReplicaEvent::Kind::kRunning, Worker(1));
  const std::string config = backend_.Launched().front().env.at("TF_CONFIG");
  for (const auto& [role, index] :
       {std::pair(Role::kPs, 0), std::pair(Role::kChief, 0), std::pair(Role::kWorker, 1)}) {
    EXPECT_NE(config.find(*backend_.AddressOf(role, index)), std::string::npos) << config;
  }
}

TEST_F(ReplicaLauncherTest, PostsAnExitOfAReplicaThatCouldNotBeLaunched) {
  backend_.RefuseLaunches(NotFound("no such program"));
  Start(WorkersOnly(1));

  launcher_.Do({LaunchOf(Worker(0), 0)});

  const Told::Event told = told_.Await(ReplicaEvent::Kind::kExited, Worker(0));
  EXPECT_EQ(told.event.cause.kind, ExitCause::Kind::kNotLaunched);
  EXPECT_NE(told.event.cause.message.find("no such program"), std::string::npos);
}

TEST_F(ReplicaLauncherTest, PostsAnExitOfAReplicaWithAVariableThatIsTooLong) {
  job::JobSpec job = WorkersOnly(1);
  job.envs = {{"LONG", std::string(200'000, 'x')}};
  Start(job);

  launcher_.Do({LaunchOf(Worker(0), 0)});

  const Told::Event told = told_.Await(ReplicaEvent::Kind::kExited, Worker(0));
  EXPECT_EQ(told.event.cause.kind, ExitCause::Kind::kNotLaunched);
  EXPECT_NE(told.event.cause.message.find("LONG"), std::string::npos);
}

TEST_F(ReplicaLauncherTest, PostsAnExitAfterAllOutputAndWithItsLastLines) {
  Start(WorkersOnly(1));
  launcher_.Do({LaunchOf(Worker(0), 0)});
  told_.Await(ReplicaEvent::Kind::kRunning, Worker(0));
  std::string output;
  for (int line = 1; line <= 30; ++line) output += fmt::format("line {}\n", line);
  backend_.Print(NameOf(Worker(0)), output);

  ASSERT_EQ(backend_.Exit(NameOf(Worker(0)), Failed()), Ok());

  const Told::Event told = told_.Await(ReplicaEvent::Kind::kExited, Worker(0));
  EXPECT_EQ(told.log_before, output);
  ASSERT_EQ(told.last_lines.size(), 20u);
  EXPECT_EQ(told.last_lines.front(), "line 11");
  EXPECT_EQ(told.last_lines.back(), "line 30");
}

TEST_F(ReplicaLauncherTest, PostsAKilledReplicaThoughItsNodeDoesNotAnswer) {
  Start(WorkersOnly(1));
  launcher_.Do({LaunchOf(Worker(0), 0)});
  told_.Await(ReplicaEvent::Kind::kRunning, Worker(0));
  backend_.HoldLogs(NameOf(Worker(0)));

  ASSERT_EQ(backend_.Exit(NameOf(Worker(0)), Killed()), Ok());

  EXPECT_TRUE(told_.Await(ReplicaEvent::Kind::kExited, Worker(0)).last_lines.empty());
  backend_.ReleaseLogs();
}

TEST_F(ReplicaLauncherTest, RunsCommandsWhileOutputCannotBeRead) {
  Start(TensorFlowJob(1, 1, 0));
  launcher_.Do({LaunchOf(Chief(0), 0)});
  told_.Await(ReplicaEvent::Kind::kRunning, Chief(0));
  backend_.HoldLogs(NameOf(Chief(0)));
  launcher_.Scan({NameOf(Chief(0))});
  backend_.AwaitBlockedLogs();

  launcher_.Do({LaunchOf(Worker(0), 0)});

  told_.Await(ReplicaEvent::Kind::kRunning, Worker(0));
  backend_.ReleaseLogs();
}

TEST(ReplicaLauncherInACluster, LaunchSeveralReplicasAtATime) {
  Told told;
  Mutex mutex;
  CondVar changed;
  int launching = 0;
  backend::FakeBackend backend;
  backend.SetOnLaunch([&](const job::ReplicaSpec&) {
    const auto timeout = std::chrono::steady_clock::now() + seconds(20);
    const MutexLock lock(mutex);
    ++launching;
    changed.NotifyAll();
    while (launching < 2) CHECK(changed.WaitUntil(mutex, timeout), "there is only one at a time");
  });
  const job::JobSpec job = WorkersOnly(16);
  ReplicaContext context = kContext;
  context.on_this_machine = false;
  ReplicaLauncher launcher(backend, job, context);
  launcher.Start(told.post_event(), told.post_log());
  told.AwaitSynced();

  for (int index = 0; index < 16; ++index) launcher.Do({LaunchOf(Worker(index), index)});

  for (int index = 0; index < 16; ++index) {
    told.Await(ReplicaEvent::Kind::kRunning, Worker(index));
  }
}

TEST(ReplicaLauncherInACluster, ReadNoOutputOfAWorkerThatSucceeds) {
  Told told;
  backend::FakeBackend backend;
  const job::JobSpec job = WorkersOnly(1);
  ReplicaContext context = kContext;
  context.on_this_machine = false;
  ReplicaLauncher launcher(backend, job, context);
  launcher.Start(told.post_event(), told.post_log());
  told.AwaitSynced();
  launcher.Do({LaunchOf(Worker(0), 0)});
  told.Await(ReplicaEvent::Kind::kRunning, Worker(0));
  backend.Print(NameOf(Worker(0)), "much\n");
  backend.HoldLogs(NameOf(Worker(0)));

  ASSERT_EQ(backend.Exit(NameOf(Worker(0)), Succeeded()), Ok());

  EXPECT_TRUE(told.Await(ReplicaEvent::Kind::kExited, Worker(0)).last_lines.empty());
  backend.ReleaseLogs();
}

TEST_F(ReplicaLauncherTest, ReadTheLastLinesOfSomeWhenManyFailAtOnce) {
  constexpr int kWorkers = 60;
  Start(WorkersOnly(kWorkers));
  for (int id = 0; id < kWorkers; ++id) launcher_.Do({LaunchOf(Worker(id), id)});
  int with_lines = 0;
  for (int id = 0; id < kWorkers; ++id) {
    told_.Await(ReplicaEvent::Kind::kRunning, Worker(id));
    backend_.Print(NameOf(Worker(id)), "ValueError\n");
    ASSERT_EQ(backend_.Exit(NameOf(Worker(id)), Failed()), Ok());
  }
  for (int id = 0; id < kWorkers; ++id) {
    with_lines += told_.Await(ReplicaEvent::Kind::kExited, Worker(id)).last_lines.empty() ? 0 : 1;
  }

  EXPECT_GE(with_lines, 20);
  EXPECT_LT(with_lines, kWorkers);
}

TEST_F(ReplicaLauncherTest, StopAndAcknowledge) {
  Start(WorkersOnly(1));
  launcher_.Do({LaunchOf(Worker(0), 0)});
  told_.Await(ReplicaEvent::Kind::kRunning, Worker(0));

  launcher_.Do({StopCommand{NameOf(Worker(0)), milliseconds(10)}});
  told_.Await(ReplicaEvent::Kind::kExited, Worker(0));
  EXPECT_EQ(backend_.Unacknowledged().size(), 1u);
  launcher_.Do({AcknowledgeCommand{NameOf(Worker(0))}, LaunchOf(Worker(1), 0)});

  told_.Await(ReplicaEvent::Kind::kRunning, Worker(1));  // commands keep their order
  EXPECT_TRUE(backend_.Unacknowledged().empty());
}

}  // namespace
}  // namespace edl::master
