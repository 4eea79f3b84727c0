#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/testing/fake_platform.h"
#include "cli/verbs.h"

namespace edl::cli {
namespace {

using backend::Depth;
using backend::Finding;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using CheckResult = Finding::CheckResult;

const Finding kThere{.what = "namespace ml", .detail = "it is there"};
const Finding kAbsent{.result = CheckResult::kMissing,
                      .what = "claim data",
                      .detail = "there is none",
                      .fix = "kubectl apply"};
const Finding kHidden{
    .result = CheckResult::kCannotTell, .what = "room", .detail = "you may not list nodes"};

TEST(Check, PrintsEachFindingWithItsFix) {
  FakePlatform fake;
  fake.cluster.emplace().findings = {kThere, kAbsent, kHidden};

  EXPECT_EQ(fake.Run({"check", "--image_name=iris:1"}), kExitFailed);

  EXPECT_EQ(fake.out(),
            "Requirements of a job on a cluster of this process, namespace ml:\n"
            "ok           namespace ml: it is there\n"
            "missing      claim data: there is none\n"
            "             fix: kubectl apply\n"
            "cannot tell  room: you may not list nodes\n"
            "1 missing, 1 could not be checked.\n");
  EXPECT_THAT(fake.cluster->checks, ElementsAre(Depth::kAll));
}

TEST(Check, SucceedsWhenNothingIsMissing) {
  FakePlatform fake;
  fake.cluster.emplace().findings = {kThere, kHidden};
  EXPECT_EQ(fake.Run({"check"}), kExitOk) << fake.err();
  EXPECT_THAT(fake.out(), HasSubstr("Nothing is missing, 1 could not be checked.\n"));
}

TEST(Check, WritesJsonForScripts) {
  FakePlatform fake;
  fake.cluster.emplace().findings = {kThere, kAbsent};

  EXPECT_EQ(fake.Run({"check", "--backend=kubernetes", "--output=json"}), kExitFailed);

  const json out = json::parse(fake.out());
  EXPECT_EQ(out["ok"], false);
  EXPECT_EQ(out["checks"][1], json::parse(R"({"what": "claim data", "verdict": "missing",
                                              "detail": "there is none", "fix": "kubectl apply"})"));
}

TEST(Check, AcceptsTheFlagsAndFilesOfTrain) {
  FakePlatform fake;
  fake.cluster.emplace();
  std::ofstream(fake.home() / "job.yaml") << "job_name: iris\nimage_name: iris:1\nnum_workers: 3\n";
  EXPECT_EQ(fake.Run({"check", "-f", (fake.home() / "job.yaml").string(), "--num_ps=1",
                      "--job_command=train", "--output=/models/iris"}),
            kExitOk)
      << fake.err();
  EXPECT_EQ(fake.Run({"check", "--image_name=x", "--volume=nonsense"}), kExitUsage);
  EXPECT_THAT(fake.err(), HasSubstr("--volume"));
}

TEST(Check, ChecksWhereTrainWouldRunTheJob) {
  FakePlatform fake;
  fake.variables["PATH"] = "";
  fake.cluster.emplace();
  EXPECT_EQ(fake.Run({"check", "--job_command=$TRAIN"}), kExitOk) << fake.err();
  EXPECT_THAT(fake.out(), HasSubstr("Requirements of a job on this machine"));
  EXPECT_EQ(fake.Run({"check"}), kExitOk);
  EXPECT_THAT(fake.out(), HasSubstr("Requirements of a job on a cluster"));
  fake.cluster.reset();
  EXPECT_EQ(fake.Run({"check"}), kExitOk);
  EXPECT_THAT(fake.out(), HasSubstr("Requirements of a job on this machine"));
  EXPECT_EQ(fake.Run({"check", "--backend=kubernetes"}), kExitFailed);
  EXPECT_THAT(fake.err(), HasSubstr("no cluster is configured"));
}

// A machine whose shell knows only python3, which cannot import anything.
void AddShell(FakePlatform& fake) {
  fake.programs["/bin/bash"] = [](const Program& program) -> Result<ProgramEnd> {
    return ProgramEnd{.code = program.command.back() == "python3" ? 0 : 1};
  };
  fake.programs["python3"] = [](const Program&) -> Result<ProgramEnd> {
    return ProgramEnd{.code = 1};
  };
}

TEST(Check, FindsTheProgramOfTheCommand) {
  FakePlatform fake;
  AddShell(fake);
  std::ofstream(fake.home() / "x.py") << "import elasticai_api\n";

  EXPECT_EQ(fake.Run({"check", "--backend=local", "--job_command=pyton x.py"}), kExitFailed);
  EXPECT_THAT(fake.out(), HasSubstr("missing      pyton: "));
  EXPECT_EQ(fake.Run({"check", "--backend=local", "--job_command=A=1 exec python x.py"}),
            kExitFailed);
  EXPECT_THAT(fake.out(), HasSubstr("fix: write python3"));
  EXPECT_EQ(fake.Run({"check", "--backend=local", "--job_command=python3 y.py"}), kExitFailed);
  EXPECT_THAT(fake.out(), HasSubstr("missing      y.py"));
  EXPECT_EQ(fake.Run({"check", "--backend=local", "--job_command=python3 -u x.py"}), kExitFailed);
  EXPECT_THAT(fake.out(), HasSubstr("missing      elasticai_api"));
  EXPECT_EQ(fake.Run({"check", "--backend=local", "--job_command=$RUN"}), kExitOk);
  EXPECT_THAT(fake.out(), HasSubstr("cannot tell  --job_command"));
}

TEST(Check, ComparesRequestsWithThisMachine) {
  FakePlatform fake;
  fake.platform().machine = {.memory_bytes = int64_t{8} << 30, .cpus = 2, .gpus = 0};
  const std::vector<std::string> check = {"check", "--backend=local",
                                          "--worker_resource_request=cpu=64,memory=900Gi,gpu=4"};

  EXPECT_EQ(fake.Run(check), kExitFailed);

  EXPECT_THAT(fake.out(), HasSubstr("requests 900.0 GiB, but this machine has 8.0 GiB"));
  EXPECT_THAT(fake.out(), HasSubstr("requests 4 of nvidia.com/gpu, but this machine has 0"));
  EXPECT_THAT(fake.out(), HasSubstr("requests 64 CPUs, but this machine has 2"));
  fake.platform().machine.memory_bytes = int64_t{1} << 30;
  EXPECT_EQ(fake.Run({"check", "--backend=local"}), kExitOk) << "defaults are for clusters";
}

TEST(Check, ReportsThatANameIsTaken) {
  FakePlatform fake;
  AddShell(fake);
  fake.AddJob({.name = "iris", .state = job::JobState::kSucceeded});

  EXPECT_EQ(fake.Run({"check", "--backend=local", "--job_name=iris"}), kExitFailed);
  EXPECT_THAT(fake.out(), HasSubstr("elasticdl delete iris"));
  EXPECT_EQ(fake.Run({"check", "--backend=local", "--job_name=other"}), kExitOk);
}

TEST(Check, ReportsWhatThisMachineLacks) {
  FakePlatform fake;
  std::ofstream(fake.home() / "file") << "x";
  fake.platform().home = fake.home() / "file" / "jobs";
  EXPECT_EQ(
      fake.Run({"check", "--volume=host_path=/does/not/exist,mount_path=/data", "--backend=local"}),
      kExitFailed);
  EXPECT_THAT(fake.out(), HasSubstr("file/jobs is not writable"));
  EXPECT_THAT(fake.out(), HasSubstr("fix: set ELASTICDL_HOME"));
  EXPECT_THAT(fake.out(), HasSubstr("missing      volume /does/not/exist"));
  EXPECT_THAT(fake.out(), HasSubstr("cannot tell  python3"));
  EXPECT_THAT(fake.out(), Not(HasSubstr("missing      /bin/bash")));
}

}  // namespace
}  // namespace edl::cli
