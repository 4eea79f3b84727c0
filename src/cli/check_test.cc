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
using Verdict = Finding::Verdict;

const Finding kThere{.what = "namespace ml", .detail = "it is there"};
const Finding kAbsent{.verdict = Verdict::kMissing,
                      .what = "claim data",
                      .detail = "there is none",
                      .fix = "kubectl apply"};
const Finding kHidden{
    .verdict = Verdict::kCannotTell, .what = "room", .detail = "you may not list nodes"};

TEST(Check, PrintsALineForEachWithTheFixBelow) {
  FakePlatform fake;
  fake.cluster.emplace().findings = {kThere, kAbsent, kHidden};

  EXPECT_EQ(fake.Run({"check", "--image_name=iris:1"}), kExitFailed);

  EXPECT_EQ(fake.out(),
            "What a job needs of a cluster of this process, namespace ml:\n"
            "ok           namespace ml: it is there\n"
            "missing      claim data: there is none\n"
            "             fix: kubectl apply\n"
            "cannot tell  room: you may not list nodes\n"
            "1 missing, 1 cannot be told.\n");
  EXPECT_THAT(fake.cluster->checks, ElementsAre(Depth::kAll));
}

TEST(Check, SucceedsWhenNothingIsMissing) {
  FakePlatform fake;
  fake.cluster.emplace().findings = {kThere, kHidden};
  EXPECT_EQ(fake.Run({"check"}), kExitOk) << fake.err();
  EXPECT_THAT(fake.out(), HasSubstr("Nothing is missing, 1 cannot be told.\n"));
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

TEST(Check, TakesTheFlagsAndFilesThatTrainTakes) {
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

TEST(Check, LooksWhereTrainWouldRunTheJob) {
  FakePlatform fake;
  fake.variables["PATH"] = "";
  fake.cluster.emplace();
  EXPECT_EQ(fake.Run({"check", "--job_command=train"}), kExitOk) << fake.err();
  EXPECT_THAT(fake.out(), HasSubstr("What a job needs of this machine"));
  EXPECT_EQ(fake.Run({"check"}), kExitOk);
  EXPECT_THAT(fake.out(), HasSubstr("What a job needs of a cluster"));
  fake.cluster.reset();
  EXPECT_EQ(fake.Run({"check"}), kExitOk);
  EXPECT_THAT(fake.out(), HasSubstr("What a job needs of this machine"));
  EXPECT_EQ(fake.Run({"check", "--backend=kubernetes"}), kExitFailed);
  EXPECT_THAT(fake.err(), HasSubstr("no cluster is configured"));
}

TEST(Check, FindsWhatThisMachineLacks) {
  FakePlatform fake;
  std::ofstream(fake.home() / "file") << "x";
  fake.platform().home = fake.home() / "file" / "jobs";
  EXPECT_EQ(
      fake.Run({"check", "--volume=host_path=/does/not/exist,mount_path=/data", "--backend=local"}),
      kExitFailed);
  EXPECT_THAT(fake.out(), HasSubstr("file/jobs cannot be written"));
  EXPECT_THAT(fake.out(), HasSubstr("fix: set ELASTICDL_HOME"));
  EXPECT_THAT(fake.out(), HasSubstr("missing      volume /does/not/exist"));
  EXPECT_THAT(fake.out(), HasSubstr("cannot tell  python3"));
  EXPECT_THAT(fake.out(), Not(HasSubstr("missing      /bin/bash")));
}

}  // namespace
}  // namespace edl::cli
