#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/testing/fake_platform.h"
#include "cli/verbs.h"

namespace edl::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

const std::vector<std::string> kIris = {"train", "--job_name=iris", "--job_command=true"};

std::vector<std::string> With(std::vector<std::string> more) {
  more.insert(more.begin(), kIris.begin(), kIris.end());
  return more;
}

job::JobView View(job::JobState state) {
  return {.name = "iris", .state = state, .started_at = 1, .ended_at = 2};
}

TEST(Train, RunsAJobToItsEndAndExitsZero) {
  FakePlatform fake;
  fake.next.end_view = View(job::JobState::kSucceeded);

  EXPECT_EQ(fake.Run(kIris), kExitOk);

  ASSERT_THAT(fake.started, SizeIs(1));
  EXPECT_EQ(fake.started[0].job_dir, fake.home() / "jobs" / "iris");
  EXPECT_THAT(fake.out(), HasSubstr("job iris runs on this machine (--backend=auto"));
  EXPECT_THAT(fake.out(), HasSubstr("Job iris succeeded"));
  const json spec = json::parse(*fake.store().Find("iris")->ReadSpec());
  EXPECT_EQ(spec["job_command"], "true");
  EXPECT_EQ(spec["num_workers"], 2);
}

TEST(Train, PrintsFlagsWithoutEffect) {
  FakePlatform fake;
  fake.next.end_view = View(job::JobState::kSucceeded);

  ASSERT_EQ(fake.Run(With({"--image_name=a", "--worker_pod_priority=high", "--image_base=b",
                           "--num_workers=1", "--dataset_fn=feed", "--optimizer=sgd",
                           "--distribution_strategy=Local"})),
            kExitOk);

  EXPECT_THAT(fake.out(),
              HasSubstr("no effect on this machine (they are for Kubernetes): --image_name, "
                        "--worker_pod_priority\n"));
  EXPECT_THAT(fake.out(),
              HasSubstr("no effect in this version: --distribution_strategy, --image_base\n"));
  EXPECT_THAT(fake.out(), HasSubstr("(they are for --model_def): --optimizer\n"));
}

TEST(Train, WarnsAboutDoubtfulFlags) {
  FakePlatform fake;
  fake.next.end_view = View(job::JobState::kSucceeded);

  ASSERT_EQ(fake.Run(With({"--num_ps=1", "--envs=A,B=1,B=2"})), kExitOk);

  EXPECT_THAT(fake.err(), HasSubstr("--num_ps_pods=1 without --need_tf_config"));
  EXPECT_THAT(fake.err(), HasSubstr("--envs: A has no '='"));
  EXPECT_THAT(fake.err(), HasSubstr("--envs: B is given twice"));
}

TEST(Train, RejectsRequestsThatExceedThisMachine) {
  FakePlatform fake;
  fake.platform().machine = {.memory_bytes = int64_t{8} << 30, .cpus = 2, .gpus = 0};
  fake.next.end_view = View(job::JobState::kSucceeded);

  EXPECT_EQ(fake.Run(With({"--worker_resource_request=memory=900Gi"})), kExitFailed);
  EXPECT_THAT(fake.err(), HasSubstr("900.0 GiB"));
  EXPECT_EQ(fake.Run(With({"--worker_resource_request=gpu=4"})), kExitFailed);
  EXPECT_THAT(fake.err(), HasSubstr("requests 4 of nvidia.com/gpu"));
  EXPECT_EQ(fake.Run(With({"--ps_resource_request=gpu=4"})), kExitOk) << "there is no ps";
  EXPECT_EQ(fake.started.size(), 1);
}

TEST(Train, RejectsBadInputInOneLineAndStartsNothing) {
  FakePlatform fake;
  const std::vector<std::vector<std::string>> bad = {
      With({"--num_wrokers=1"}),
      With({"--num_workers=-1"}),
      With({"--volume=host_path=/a,host_path=/b,mount_path=/c"}),
      With({"--volume=claim_name=a,mount_path=/c"}),
      With({"--distribution_strategy=Best"}),
      With({"--distribution_strategy=AllreduceStrategy"}),
      With({"--backend=kubernetes"}),
      With({"--yaml=pod.yaml"}),
      With({"--file=/does/not/exist.yaml"}),
      With({"--image=x"}),
      {"train", "--job_name=iris"},
      {"train", "--job_command=true"},
      {"train", "--job_command=true", "--job_name=Iris"},
  };
  for (const auto& arguments : bad) {
    EXPECT_NE(fake.Run(arguments), kExitOk) << arguments.back();
    EXPECT_THAT(fake.err(), HasSubstr("elasticdl: "));
    const std::string err = fake.err();
    EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 1) << err;
    EXPECT_EQ(fake.out(), "");
  }
  EXPECT_THAT(fake.started, SizeIs(0));
  EXPECT_FALSE(fs::exists(fake.home() / "jobs" / "iris"));
}

TEST(Train, ReadsFlagsFromAFileThatTheCommandLineOverrides) {
  FakePlatform fake;
  fake.variables["ELASTICDL_BACKEND"] = "local";
  std::ofstream(fake.home() / "job.yaml")
      << "job_name: iris\njob_command: sleep\nnum_workers: 3\nenvs: {TOKEN: hidden-word}\n";

  ASSERT_EQ(fake.Run({"train", "-f", (fake.home() / "job.yaml").string(), "--num_workers=4",
                      "--dry_run"}),
            kExitOk)
      << fake.err();

  const json job = json::parse(fake.out());
  EXPECT_EQ(job["flags"]["num_workers"], json::parse(R"({"value": 4, "source": "command line"})"));
  EXPECT_EQ(job["flags"]["job_command"], json::parse(R"({"value": "sleep", "source": "file"})"));
  EXPECT_EQ(job["flags"]["backend"]["source"], "environment");
  EXPECT_EQ(job["flags"]["num_epochs"]["source"], "default");
  EXPECT_EQ(job["flags"]["envs"]["value"], "TOKEN=***");
  EXPECT_THAT(fake.out(), Not(HasSubstr("hidden-word")));
  EXPECT_THAT(fake.started, SizeIs(0));
  EXPECT_FALSE(fs::exists(fake.home() / "jobs"));
}

TEST(Train, RejectsTheNameOfARunningJob) {
  FakePlatform fake;
  fake.AddRunningJob(View(job::JobState::kRunning), "127.0.0.1:1", "t");

  EXPECT_EQ(fake.Run(kIris), kExitFailed);

  EXPECT_THAT(fake.err(), HasSubstr("job iris is running"));
  EXPECT_EQ(fake.Run(With({"--resume"})), kExitFailed);
  EXPECT_THAT(fake.err(), HasSubstr("job iris is running"));
}

TEST(Train, SuggestsToDeleteAnEndedJobOfThatName) {
  FakePlatform fake;
  fake.AddJob(View(job::JobState::kSucceeded));

  EXPECT_EQ(fake.Run(kIris), kExitFailed);
  EXPECT_THAT(fake.err(), HasSubstr("it succeeded; delete it with `elasticdl delete iris`"));
  EXPECT_EQ(fake.Run(With({"--resume"})), kExitFailed);
  EXPECT_THAT(fake.err(), HasSubstr("nothing to resume"));

  EXPECT_EQ(fake.Run({"delete", "iris"}), kExitOk);
  fake.next.end_view = View(job::JobState::kSucceeded);
  EXPECT_EQ(fake.Run(kIris), kExitOk);
}

TEST(Train, ResumesAnInterruptedJobWithItsFlags) {
  FakePlatform fake;
  fake.next.end = {.exit_code = 1};
  fake.next.end_view = View(job::JobState::kRunning);
  EXPECT_EQ(fake.Run(With({"--num_workers=5", "--envs=A=1"})), kExitFailed);
  EXPECT_EQ(fake.Run(kIris), kExitFailed);
  EXPECT_THAT(fake.err(), HasSubstr("job iris was interrupted; resume it by adding --resume"));

  fake.next.end = {};
  fake.next.end_view = View(job::JobState::kSucceeded);
  EXPECT_EQ(fake.Run({"train", "--job_name=iris", "--resume", "--num_ps=1"}), kExitOk)
      << fake.err();

  EXPECT_THAT(fake.out(), HasSubstr("resuming job iris, which was interrupted"));
  const json spec = json::parse(*fake.store().Find("iris")->ReadSpec());
  EXPECT_EQ(spec["num_workers"], 5);
  EXPECT_EQ(spec["num_ps_pods"], 1);
  EXPECT_EQ(spec["envs"], "A=1");
  EXPECT_EQ(spec["resume"], true);
}

json SpecOf(FakePlatform& fake) { return json::parse(*fake.store().Find("iris")->ReadSpec()); }

TEST(Submission, HasAnIdThatResumeKeepsAndANewJobDoesNot) {
  FakePlatform fake;
  fake.next.end = {.exit_code = 1};
  fake.next.end_view = View(job::JobState::kFailed);
  ASSERT_EQ(fake.Run(kIris), kExitFailed);
  const std::string id = SpecOf(fake)["submission_id"];
  EXPECT_EQ(id.size(), 32U);
  EXPECT_EQ(SpecOf(fake)["resume_number"], 0);

  ASSERT_EQ(fake.Run({"train", "--job_name=iris", "--resume"}), kExitFailed);
  EXPECT_EQ(SpecOf(fake)["submission_id"], id);
  EXPECT_EQ(SpecOf(fake)["resume_number"], 1);
  EXPECT_EQ(SpecOf(fake)["resume_workers"], 0);
  ASSERT_EQ(fake.Run({"train", "--job_name=iris", "--resume", "--num_workers=7"}), kExitFailed);
  EXPECT_EQ(SpecOf(fake)["resume_number"], 2);
  EXPECT_EQ(SpecOf(fake)["resume_workers"], 7);
  ASSERT_EQ(fake.Run({"train", "--job_name=iris", "--resume"}), kExitFailed);
  EXPECT_EQ(SpecOf(fake)["resume_workers"], 0) << "it was said of the resume before";

  ASSERT_EQ(fake.Run({"delete", "iris"}), kExitOk);
  ASSERT_EQ(fake.Run(kIris), kExitFailed);
  EXPECT_NE(SpecOf(fake)["submission_id"], id);
}

TEST(Submission, IsNotResumedIfTheLedgerHasFewerBatchesThanTheStatus) {
  FakePlatform fake;
  job::JobView stopped = View(job::JobState::kStopped);
  stopped.version = 98;
  fake.AddJob(stopped);
  const std::vector<std::string> resume = {"train", "--job_name=iris", "--resume"};

  EXPECT_EQ(fake.Run(resume), kExitFailed);
  EXPECT_THAT(fake.err(), HasSubstr("its status has 98 completed batches"));
  EXPECT_THAT(fake.err(), HasSubstr("--resume_with_lost_progress"));
  job::JobView less = stopped;
  less.version = 97;
  fake.ledgers.emplace("iris", less);
  EXPECT_EQ(fake.Run(resume), kExitFailed);
  EXPECT_THAT(fake.started, SizeIs(0));

  fake.next.end_view = View(job::JobState::kSucceeded);
  std::vector<std::string> anyway = resume;
  anyway.emplace_back("--resume_with_lost_progress=true");
  EXPECT_EQ(fake.Run(anyway), kExitOk) << fake.err();
  EXPECT_EQ(SpecOf(fake)["resume_version"], 0);
}

TEST(Submission, IsResumedIfTheLedgerHasAsManyBatchesAsTheStatus) {
  FakePlatform fake;
  job::JobView stopped = View(job::JobState::kStopped);
  stopped.version = 98;
  fake.AddJob(stopped);
  fake.ledgers.emplace("iris", stopped);
  fake.next.end_view = View(job::JobState::kSucceeded);

  EXPECT_EQ(fake.Run({"train", "--job_name=iris", "--resume"}), kExitOk) << fake.err();

  EXPECT_EQ(SpecOf(fake)["resume_version"], 98);
}

TEST(Train, CannotResumeAMissingJob) {
  FakePlatform fake;
  EXPECT_EQ(fake.Run(With({"--resume"})), kExitFailed);
  EXPECT_THAT(fake.err(), HasSubstr("there is no job iris"));
}

TEST(Train, LeavesNoFolderOfAJobThatCouldNotStart) {
  FakePlatform fake;
  fake.next.start_failure = PermissionDenied("mounting /data: not allowed");

  EXPECT_EQ(fake.Run(kIris), kExitFailed);

  EXPECT_EQ(fake.err(), "elasticdl: job iris was not started: mounting /data: not allowed\n");
  EXPECT_FALSE(fs::exists(fake.home() / "jobs" / "iris"));
}

TEST(Train, LeavesNoFolderOfAJobWhoseMasterCouldNotStart) {
  FakePlatform fake;
  fake.next.end = {.exit_code = 2};
  fake.next.master_log = "[t] [INFO] [a.cc:1:f] begin\n[t] [ERROR] [b.cc:2:g] the disk is full\n";

  EXPECT_EQ(fake.Run(kIris), kExitUsage);

  EXPECT_EQ(fake.err(), "elasticdl: job iris could not start: the disk is full\n");
  EXPECT_FALSE(fs::exists(fake.home() / "jobs" / "iris"));
}

TEST(Train, KeepsAJobWhoseLedgerCouldNotBeWrittenInTheMiddle) {
  FakePlatform fake;
  fake.next.end = {.exit_code = 2};
  fake.next.master_log = "[t] [ERROR] [b.cc:2:g] the disk is full\n";
  fake.next.on_start = [&](FakeJob&, const JobFolder&) {
    fake.AddLog("iris", "iris-edljob-worker-0", "x");
  };

  EXPECT_EQ(fake.Run(kIris), kExitUsage);

  EXPECT_THAT(fake.out(), HasSubstr("Job iris interrupted: the disk is full"));
  EXPECT_TRUE(fs::exists(fake.home() / "jobs" / "iris"));
}

TEST(Train, SuggestsAnotherHomeIfItIsNotWritable) {
  FakePlatform fake;
  fake.platform().home = "/sys/elasticdl";  // where not even root can make a folder

  EXPECT_EQ(fake.Run(kIris), kExitFailed);

  EXPECT_THAT(fake.err(), HasSubstr("set ELASTICDL_HOME to a writable folder"));
}

TEST(Train, ReportsAHomeThatIsNotAFolder) {
  FakePlatform fake;
  std::ofstream(fake.home() / "file") << "x";
  fake.platform().home = fake.home() / "file";

  EXPECT_EQ(fake.Run(kIris), kExitFailed);

  EXPECT_THAT(fake.err(), HasSubstr("is not a folder"));
}

}  // namespace
}  // namespace edl::cli
