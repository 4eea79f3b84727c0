#include "cli/train_on_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/testing/fake_platform.h"
#include "cli/verbs.h"
#include "job/job_view.h"

namespace edl::cli {
namespace {

using backend::Depth;
using backend::Finding;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using CheckResult = Finding::CheckResult;

const std::vector<std::string> kIris = {"train", "--job_name=iris", "--job_command=true",
                                        "--image_name=iris:1"};

std::vector<std::string> With(std::vector<std::string> more) {
  more.insert(more.begin(), kIris.begin(), kIris.end());
  return more;
}

TEST(TrainOnCluster, ChecksForBlockersBeforeItSubmits) {
  FakePlatform fake;
  fake.cluster.emplace().findings = {
      {.what = "namespace ml", .detail = "it is there"},
      {.result = CheckResult::kMissing, .what = "room", .detail = "there is none now"}};

  EXPECT_EQ(fake.Run(kIris), kExitOk) << fake.err();

  EXPECT_THAT(fake.out(), HasSubstr("job iris was successfully submitted"));
  EXPECT_THAT(fake.cluster->checks, ElementsAre(Depth::kBlockers));
  EXPECT_EQ(fake.cluster->jobs.count("iris"), 1u);
}

TEST(TrainOnCluster, ReportsAllBlockersInOneMessageAndSubmitsNothing) {
  FakePlatform fake;
  fake.cluster.emplace().findings = {{.result = CheckResult::kMissing,
                                      .what = "priority class high",
                                      .detail = "there is none",
                                      .fix = "kubectl apply",
                                      .blocks = true},
                                     {.result = CheckResult::kMissing,
                                      .what = "claim data",
                                      .detail = "there is none",
                                      .fix = "make it",
                                      .blocks = true}};
  for (const auto& arguments : {kIris, With({"--wait"})}) {
    EXPECT_EQ(fake.Run(arguments), kExitFailed);
    EXPECT_EQ(fake.err(),
              "elasticdl: job iris was not submitted: priority class high: there is none (fix: "
              "kubectl apply); claim data: there is none (fix: make it)\n");
  }
  EXPECT_THAT(fake.cluster->jobs, IsEmpty());
}

TEST(TrainOnCluster, ChecksNothingWhenNothingIsSubmitted) {
  FakePlatform fake;
  fake.cluster.emplace();
  EXPECT_EQ(fake.Run(With({"--dry_run"})), kExitOk);
  EXPECT_EQ(fake.Run(With({"--yaml=" + (fake.home() / "job.yaml").string()})), kExitOk);
  EXPECT_THAT(fake.cluster->checks, IsEmpty());
  EXPECT_THAT(fake.cluster->jobs, IsEmpty());
}

TEST(TrainOnCluster, KeepsTheSubmissionIdAndStatusOfAResumedJob) {
  FakePlatform fake;
  fake.cluster.emplace();
  ASSERT_EQ(fake.Run(kIris), kExitOk) << fake.err();
  backend::Submission& job = fake.cluster->jobs.at("iris");
  const json first = json::parse(job.spec_json);
  EXPECT_EQ(first["submission_id"].get<std::string>().size(), 32U);
  fake.cluster->ended.insert("iris");
  job.status_json =
      job::JobView{.name = "iris", .state = job::JobState::kFailed, .version = 42}.ToJson();

  EXPECT_EQ(fake.Run({"train", "--job_name=iris", "--resume", "--num_workers=3"}), kExitOk)
      << fake.err();

  const json again = json::parse(job.spec_json);
  EXPECT_EQ(again["submission_id"], first["submission_id"]);
  EXPECT_EQ(again["resume_number"], 1);
  EXPECT_EQ(again["resume_version"], 42);
  EXPECT_EQ(again["resume_workers"], 3);
  EXPECT_EQ(json::parse(job.status_json)["version"], 42);
}

TEST(TrainOnCluster, DoesNotResumeASucceededJob) {
  FakePlatform fake;
  fake.cluster.emplace();
  ASSERT_EQ(fake.Run(kIris), kExitOk) << fake.err();
  fake.cluster->ended.insert("iris");
  fake.cluster->jobs.at("iris").status_json =
      job::JobView{.name = "iris", .state = job::JobState::kSucceeded}.ToJson();

  EXPECT_EQ(fake.Run({"train", "--job_name=iris", "--resume"}), kExitFailed);

  EXPECT_THAT(fake.err(), HasSubstr("nothing to resume"));
}

TEST(TrainOnCluster, ReportsWhatBlocksAResume) {
  FakePlatform fake;
  fake.cluster.emplace();
  ASSERT_EQ(fake.Run(kIris), kExitOk) << fake.err();
  EXPECT_EQ(fake.Run({"train", "--job_name=iris", "--resume"}), kExitFailed);
  EXPECT_THAT(fake.err(), HasSubstr("job iris is running"));

  fake.cluster->findings = {{.result = CheckResult::kMissing, .what = "namespace", .blocks = true}};
  EXPECT_EQ(fake.Run({"train", "--job_name=iris", "--resume"}), kExitFailed);
  EXPECT_THAT(fake.err(), HasSubstr("job iris was not submitted: namespace"));
}

TEST(StopOnCluster, DeletesPodsThatAMasterLeftBehind) {
  FakePlatform fake;
  fake.cluster.emplace();
  ASSERT_EQ(fake.Run(kIris), kExitOk) << fake.err();
  fake.cluster->running = false;
  fake.cluster->left_behind = 3;

  EXPECT_EQ(fake.Run({"stop", "iris", "--backend=kubernetes"}), kExitOk) << fake.err();

  EXPECT_THAT(fake.out(), HasSubstr("job iris is not running: interrupted"));
  EXPECT_THAT(fake.out(), HasSubstr("3 pods that its master left behind are being deleted"));
  EXPECT_EQ(fake.cluster->left_behind, 0);
}

TEST(StopOnCluster, SuggestsForceForAJobThatDoesNotEnd) {
  FakePlatform fake;
  fake.cluster.emplace();
  ASSERT_EQ(fake.Run(kIris), kExitOk) << fake.err();
  fake.set_clock_step(std::chrono::seconds(25));

  EXPECT_EQ(fake.Run({"stop", "iris", "--backend=kubernetes"}), kExitFailed) << fake.out();

  EXPECT_THAT(fake.err(), HasSubstr("kubectl delete pod elasticdl-iris-master"));
  EXPECT_THAT(fake.err(), HasSubstr("--force --grace-period=0 where its node is lost"));
}

TEST(StatusOnCluster, EndsWhenTheTokenOfItsUserIsRevoked) {
  FakePlatform fake;
  fake.cluster.emplace();
  ASSERT_EQ(fake.Run(kIris), kExitOk) << fake.err();
  int searches = 0;
  fake.cluster->on_find = [&searches] {
    constexpr int kMost = 10;  // ends a `status -f` that does not end by itself, with another error
    if (++searches > kMost) return NotFound("it went on");
    return searches > 2 ? Unauthenticated("the token is revoked") : Ok();
  };

  EXPECT_EQ(fake.Run({"status", "iris", "-f", "--backend=kubernetes"}), kExitFailed) << fake.out();

  EXPECT_THAT(fake.err(), HasSubstr("the token is revoked"));
}

TEST(StatusOnCluster, ShowsWhyAJobWasInterrupted) {
  FakePlatform fake;
  fake.cluster.emplace();
  ASSERT_EQ(fake.Run(kIris), kExitOk) << fake.err();
  fake.cluster->running = false;
  fake.cluster->trouble = "its master ran out of memory";

  EXPECT_EQ(fake.Run({"status", "iris", "--backend=kubernetes"}), kExitOk) << fake.err();

  EXPECT_THAT(fake.out(), HasSubstr("its master ran out of memory"));
}

TEST(ScaleOnCluster, RejectsZeroWorkers) {
  FakePlatform fake;
  fake.cluster.emplace();
  ASSERT_EQ(fake.Run(kIris), kExitOk) << fake.err();

  EXPECT_EQ(fake.Run({"scale", "iris", "--num_workers=0", "--backend=kubernetes"}), kExitUsage);

  EXPECT_THAT(fake.err(), HasSubstr("at least 1 is needed"));
}

}  // namespace
}  // namespace edl::cli
