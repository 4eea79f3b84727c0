#include "reconciler/process/controller.h"

#include <functional>
#include <string>
#include <vector>

#include "reconciler/labels.h"
#include "reconciler/tfjob.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/testing/fake_clock.h"
#include "base/testing/status_matchers.h"
#include "kube/testing/api_server.h"
#include "kube/text.h"

namespace edl::reconciler {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
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

  // Changes the job as another client.
  void Change(const std::function<void(kube::Object&)>& change) {
    kube::Object job = *server_.Get(kTFJobs, kJob);
    change(job);
    cache_.JobListener().on_event(Event::kModified, server_.Put(kTFJobs, job));
  }
  // An object that the job controls, on a node that is lost.
  kube::Object LostPod(const std::string& name) {
    const kube::Object job = *server_.Get(kTFJobs, kJob);
    kube::Object pod(kube::kPods, {"ml", name});
    pod.AddOwner({.api_version = kTFJobs.api_version(),
                  .kind = std::string(kTFJobs.kind),
                  .name = job.name(),
                  .uid = job.uid(),
                  .controller = true});
    pod.metadata()["deletionTimestamp"] = kube::FormatTime(clock_.WallNow());
    pod.metadata()["deletionGracePeriodSeconds"] = 2;
    pod.fields()["spec"]["nodeName"] = "n1";
    pod.fields()["status"] = {
        {"phase", "Running"},
        {"conditions", json::array({{{"type", "Ready"}, {"status", "False"}}})}};
    return pod;
  }
  // Worker 0 of the job, which a watch has reported.
  void WatchWorker(kube::Object pod) {
    pod.metadata()["labels"] = {
        {kJobNameLabel, "mnist"}, {kReplicaTypeLabel, "worker"}, {kReplicaIndexLabel, "0"}};
    cache_.PodListener().on_event(Event::kAdded, server_.Put(kube::kPods, pod));
  }
  // Worker 0 has failed, and is to be replaced.
  void FailWorker() {
    Change([](kube::Object& job) {
      job.fields()["spec"]["tfReplicaSpecs"]["Worker"]["restartPolicy"] = "ExitCode";
    });
    kube::Object pod = LostPod("mnist-worker-0");
    pod.metadata().erase("deletionTimestamp");
    const json exit = {{"exitCode", 137}};
    pod.fields()["status"] = {
        {"phase", "Failed"},
        {"containerStatuses",
         json::array({{{"name", "tensorflow"}, {"state", {{"terminated", exit}}}}})}};
    WatchWorker(pod);
  }
  std::vector<std::string> EventReasons() {
    recorder_.Flush();
    std::vector<std::string> reasons;
    const auto events = client_.List(kube::kEvents, "ml");
    EXPECT_OK(events);
    for (const kube::Object& event : events.ok() ? events->items : std::vector<kube::Object>()) {
      reasons.push_back(TextIn(event.fields(), "reason"));
    }
    return reasons;
  }
  bool CountsOneJob() const {
    metrics::Exposition out(metrics::Format::kPrometheus, {});
    metrics_.AddTo(out, {}, /*jobs=*/1, /*threads=*/1, /*leading=*/true);
    return out.Finish().find(
               "jobs_created_total{framework=\"tensorflow\",job_namespace=\"ml\"} 1\n") !=
           std::string::npos;
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

TEST_F(JobControllerTest, K45_ALostNodeDoesNotBlockADeletionInTheForeground) {
  WatchWorker(LostPod("mnist-worker-0"));
  cache_.PodListener().on_event(Event::kAdded, server_.Put(kube::kPods, LostPod("mnist-shards")));
  Change([](kube::Object& job) {
    job.metadata()["annotations"] = {{kDataShards, "true"}};
    job.metadata()["finalizers"] = json::array({"foregroundDeletion"});
    job.metadata()["deletionTimestamp"] = "2026-11-15T10:00:00Z";
  });
  ASSERT_OK(controller_.Sync(kJob, {}).status);
  EXPECT_EQ(server_.CountRequests("DELETE "), 0);

  clock_.Advance(std::chrono::seconds(12));
  ASSERT_OK(controller_.Sync(kJob, {}).status);

  EXPECT_EQ(server_.CountRequests("DELETE /api/v1/namespaces/ml/pods/mnist-worker-0"), 1);
  EXPECT_EQ(server_.CountRequests("DELETE /api/v1/namespaces/ml/pods/mnist-shards"), 1);
  EXPECT_EQ(server_.CountRequests("POST "), 0);
}

TEST_F(JobControllerTest, K45_ALostNodeDoesNotBlockAJobThatIsSubmittedAgain) {
  kube::Object pod = LostPod("mnist-worker-0");
  pod.metadata()["ownerReferences"][0]["uid"] = "earlier";
  WatchWorker(pod);
  EXPECT_THAT(controller_.Sync(kJob, {}).status, StatusIs(Code::kAborted));
  EXPECT_EQ(server_.CountRequests("DELETE "), 0);

  clock_.Advance(std::chrono::seconds(12));
  // The pod is created at the same time, which may be too early, and then again.
  const Status first = controller_.Sync(kJob, {}).status;
  EXPECT_TRUE(first.ok() || first.code() == Code::kAborted) << first.message();
  EXPECT_OK(controller_.Sync(kJob, {}).status);

  EXPECT_EQ(server_.Get(kube::kPods, {"ml", "mnist-worker-0"}).value().owners().at(0).uid,
            server_.Get(kTFJobs, kJob).value().uid());
}

TEST_F(JobControllerTest, ReplacesNoPodWhenTheServerDropsWhatItMustRemember) {
  FailWorker();
  // The schema of another CRD.
  kube::Object pruned = *server_.Get(kTFJobs, kJob);
  pruned.fields()["status"] = {{"conditions", json::array()}};
  server_.Inject({.part = "/status", .times = 2, .status = 200, .body = Dump(pruned.fields())});

  for (int i = 0; i < 2; ++i) {
    const Status status = controller_.Sync(kJob, {}).status;
    EXPECT_THAT(status, StatusIs(Code::kFailedPrecondition,
                                 HasSubstr("elasticdl/manifests/tfjob-operator/crd.yaml")));
  }

  EXPECT_EQ(server_.CountRequests("DELETE "), 0);
  EXPECT_EQ(server_.CountRequests("PUT "), 2);
  EXPECT_THAT(EventReasons(), ElementsAre("StatusNotKept"));
  EXPECT_EQ(client_.List(kube::kEvents, "ml").value().items.at(0).fields()["count"], 1);

  ASSERT_OK(controller_.Sync(kJob, {}).status);
  EXPECT_EQ(server_.CountRequests("DELETE /api/v1/namespaces/ml/pods/mnist-worker-0"), 1);
}

TEST_F(JobControllerTest, AJobThatEndsNeedsNothingThatTheServerDrops) {
  Change([](kube::Object& job) {
    job.fields()["spec"]["tfReplicaSpecs"]["Worker"]["restartPolicy"] = "OnFailure";
    job.fields()["spec"]["runPolicy"]["backoffLimit"] = 1;
  });
  FailWorker();
  kube::Object pruned = *server_.Get(kTFJobs, kJob);
  pruned.fields()["status"] = {{"conditions", json::array()}};
  server_.Inject({.part = "/status", .status = 200, .body = Dump(pruned.fields())});

  EXPECT_OK(controller_.Sync(kJob, {}).status);

  EXPECT_THAT(EventReasons(), testing::Contains("TFJobFailed"));
}

TEST_F(JobControllerTest, RecordsAStateLaterIfItsEventWasDropped) {
  kube::EventRecorder small(connection_, timing_, {.max_queued = 1});
  JobController controller(cache_, writer_, small, metrics_, clock_, {}, {});
  Change([](kube::Object& job) { job.metadata()["annotations"] = {{kMinWorkers, "two"}}; });
  const kube::Object job = *server_.Get(kTFJobs, kJob);
  ASSERT_TRUE(small.Record(job, kube::EventType::kNormal, "Other", "fills the queue"));
  ASSERT_OK(controller.Sync(kJob, {}).status);
  small.Flush();
  EXPECT_THAT(EventReasons(), testing::Not(testing::Contains("InvalidAnnotation")));

  ASSERT_OK(controller.Sync(kJob, {}).status);
  small.Flush();

  EXPECT_THAT(EventReasons(), testing::Contains("InvalidAnnotation"));
}

// The status is stored, but the connection breaks before the answer.
TEST_F(JobControllerTest, K45_AStatusWhoseAnswerIsLostCountsAsWritten) {
  server_.Inject({.kind = Fault::Kind::kLost, .part = "/status"});

  EXPECT_OK(controller_.Sync(kJob, {}).status);

  EXPECT_TRUE(CountsOneJob());
  EXPECT_OK(controller_.Sync(kJob, {}).status);
  EXPECT_TRUE(CountsOneJob());
  EXPECT_EQ(server_.CountRequests("PUT "), 1);
}

TEST_F(JobControllerTest, K45_AStatusWhoseSecondAttemptIsAConflictCountsAsWritten) {
  kube::Client repeating(connection_, timing_, {.tries = 3});
  ClusterWriter writer(repeating, client_, cache_, recorder_, {});
  JobController controller(cache_, writer, recorder_, metrics_, clock_, {}, {});
  server_.Inject({.kind = Fault::Kind::kLost, .part = "/status"});

  EXPECT_OK(controller.Sync(kJob, {}).status);

  EXPECT_TRUE(CountsOneJob());
}

TEST_F(JobControllerTest, AConflictWithAnotherClientIsNoWrite) {
  const kube::Object before = *server_.Get(kTFJobs, kJob);
  kube::Object job = before;
  job.metadata()["labels"] = {{"changed", "by-another-client"}};
  server_.Put(kTFJobs, job);

  EXPECT_THAT(controller_.Sync(kJob, {}).status, StatusIs(Code::kAborted));

  EXPECT_FALSE(CountsOneJob());
}

TEST_F(JobControllerTest, AFinishedJobWithoutADataShardServiceNeedsNoCalls) {
  kube::Object shards = LostPod("mnist-shards");
  shards.metadata()["labels"] = {{kJobNameLabel, "mnist"}};
  Change([](kube::Object& job) {
    job.metadata()["annotations"] = {{kDataShards, "true"}};
    job.fields()["status"] = {
        {"conditions", json::array({{{"type", "Created"}, {"status", "True"}},
                                    {{"type", "Succeeded"}, {"status", "True"}}})},
        {"completionTime", "1970-01-01T00:00:00Z"}};
  });

  EXPECT_OK(controller_.Sync(kJob, {}).status);

  EXPECT_EQ(server_.CountRequests("GET /api/v1"), 0);
  shards = server_.Put(kube::kPods, shards);
  cache_.PodListener().on_list({.items = {shards}, .resource_version = "1000"});
  EXPECT_OK(controller_.Sync(kJob, {}).status);
  EXPECT_EQ(server_.CountRequests("GET /api/v1"), 2);
  cache_.PodListener().on_event(Event::kDeleted, shards);
  EXPECT_OK(controller_.Sync(kJob, {}).status);
  EXPECT_EQ(server_.CountRequests("GET /api/v1"), 2);
}

}  // namespace
}  // namespace edl::reconciler
