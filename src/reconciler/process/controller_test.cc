#include "reconciler/process/controller.h"

#include "reconciler/tfjob.h"
#include <gtest/gtest.h>

#include "base/testing/fake_clock.h"
#include "base/testing/status_matchers.h"
#include "kube/testing/api_server.h"
#include "kube/text.h"

namespace edl::reconciler {
namespace {

using nlohmann::json;
using Event = kube::WatchEvent::Kind;
using Fault = kube::ApiServer::Fault;

const kube::ObjectKey kJob{"ml", "mnist"};

class JobControllerTest : public testing::Test {
 protected:
  // A job with one worker that may take an hour.
  void SetUp() override {
    kube::Object job(kTFJobs, kJob);
    const json container = {{"name", "tensorflow"}, {"image", "tf"}};
    job.fields()["spec"] = {
        {"runPolicy", {{"activeDeadlineSeconds", 3600}}},
        {"tfReplicaSpecs",
         {{"Worker", {{"template", {{"spec", {{"containers", json::array({container})}}}}}}}}}};
    cache_.JobListener().on_event(Event::kAdded, server_.Put(kTFJobs, job));
  }

  FakeClock clock_;
  SystemClock system_clock_;
  kube::Timing timing_ = kube::RealTiming(system_clock_);
  kube::ApiServer server_;
  kube::Connection connection_{server_.config(), clock_, {}};
  kube::Client client_{connection_, timing_, {.tries = 1}};
  kube::EventRecorder recorder_{connection_, timing_, {}};
  JobCache cache_{clock_, [](const kube::ObjectKey&) {}};
  ClusterWriter writer_{client_, client_, cache_, recorder_, {}};
  OperatorMetrics metrics_;
  JobController controller_{cache_, writer_, recorder_, metrics_, clock_, {}, {}};
};

TEST_F(JobControllerTest, KeepsTheDeadlineOfAJobWhosePodsAreRefused) {
  server_.Inject({.part = "POST /api/v1/namespaces/ml/pods", .times = 10, .status = 403});

  const JobController::Outcome outcome = controller_.Sync(kJob, {});

  EXPECT_THAT(outcome.status, StatusIs(Code::kPermissionDenied));
  ASSERT_TRUE(outcome.again_at.has_value());
  EXPECT_LE(*outcome.again_at, clock_.WallNow() + std::chrono::hours(1));
}

TEST_F(JobControllerTest, CreatesThePodsOfAJobWhoseDataShardServiceCannotBeRead) {
  kube::Object job = *server_.Get(kTFJobs, kJob);
  job.metadata()["annotations"] = {{kDataShards, "true"}};
  cache_.JobListener().on_event(Event::kModified, server_.Put(kTFJobs, job));
  server_.Inject({.part = "GET /api/v1/namespaces/ml/services", .times = 10, .status = 403});

  const JobController::Outcome outcome = controller_.Sync(kJob, {});

  EXPECT_THAT(outcome.status, StatusIs(Code::kPermissionDenied));
  EXPECT_TRUE(outcome.again_at.has_value());
  EXPECT_OK(server_.Get(kube::kPods, {"ml", "mnist-worker-0"}));
}

TEST_F(JobControllerTest, K45_ClockSkewDoesNotDelayTheReplacementOfALostDataShardService) {
  kube::Object job = *server_.Get(kTFJobs, kJob);
  job.metadata()["annotations"] = {{kDataShards, "true"}};
  cache_.JobListener().on_event(Event::kModified, server_.Put(kTFJobs, job));
  // A pod on a lost node that was deleted two seconds ago, by a clock that is an hour ahead.
  kube::Object pod(kube::kPods, {"ml", "mnist-shards"});
  pod.AddOwner({.api_version = kTFJobs.api_version(),
                .kind = std::string(kTFJobs.kind),
                .name = job.name(),
                .uid = job.uid(),
                .controller = true});
  pod.metadata()["deletionTimestamp"] = kube::FormatTime(clock_.WallNow() + std::chrono::hours(1));
  pod.metadata()["deletionGracePeriodSeconds"] = 2;
  pod.fields()["spec"]["nodeName"] = "n1";
  pod.fields()["status"] = {
      {"phase", "Running"},
      {"conditions", json::array({{{"type", "Ready"}, {"status", "False"}}})}};
  server_.Put(kube::kPods, pod);
  const std::string deletion = "DELETE /api/v1/namespaces/ml/pods/mnist-shards";

  clock_.Advance(std::chrono::seconds(1));
  ASSERT_OK(controller_.Sync(kJob, {}).status);
  clock_.Advance(std::chrono::seconds(11));
  ASSERT_OK(controller_.Sync(kJob, {}).status);
  EXPECT_EQ(server_.CountRequests(deletion), 0);
  clock_.Advance(std::chrono::seconds(1));
  ASSERT_OK(controller_.Sync(kJob, {}).status);

  EXPECT_EQ(server_.CountRequests(deletion), 1);
}

TEST_F(JobControllerTest, LooksAgainForAJobWhoseStatusIsNotFound) {
  server_.Inject({.part = "/status", .times = 10, .status = 404});

  const JobController::Outcome outcome = controller_.Sync(kJob, {});

  EXPECT_OK(outcome.status);
  EXPECT_EQ(outcome.again_at, clock_.WallNow() + JobController::kLookForJob);
}

TEST_F(JobControllerTest, ReportsThatAJobIsGone) {
  EXPECT_FALSE(controller_.Sync(kJob, {}).gone);
  cache_.JobListener().on_event(Event::kDeleted, *server_.Get(kTFJobs, kJob));
  EXPECT_TRUE(controller_.Sync(kJob, {}).gone);
}

TEST_F(JobControllerTest, KeepsTheDeadlineOfAJobWhoseStatusIsRefused) {
  server_.Inject({.part = "/status", .status = 500});

  const JobController::Outcome outcome = controller_.Sync(kJob, {});

  EXPECT_FALSE(outcome.status.ok());
  EXPECT_TRUE(outcome.again_at.has_value());
}

}  // namespace
}  // namespace edl::reconciler
