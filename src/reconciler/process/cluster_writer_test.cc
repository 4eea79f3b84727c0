#include "reconciler/process/cluster_writer.h"

#include <stdexcept>
#include <string>
#include <vector>

#include "reconciler/labels.h"
#include "reconciler/tfjob.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "job/progress.h"
#include "kube/testing/api_server.h"

namespace edl::reconciler {
namespace {

using nlohmann::json;
using Kind = Action::Kind;

const kube::ObjectKey kJob{"ml", "mnist"};
const kube::ObjectKey kPod{"ml", "mnist-worker-0"};

class ClusterWriterTest : public testing::Test {
 protected:
  kube::Object Pod() {
    kube::Object pod(kube::kPods, kPod);
    pod.metadata()["labels"] = {
        {kJobNameLabel, "mnist"}, {kReplicaTypeLabel, "worker"}, {kReplicaIndexLabel, "0"}};
    return pod;
  }
  kube::Object OwnPod() {
    kube::Object pod = Pod();
    pod.AddOwner({.api_version = kTFJobs.api_version(),
                  .kind = std::string(kTFJobs.kind),
                  .name = job_.name(),
                  .uid = job_.uid(),
                  .controller = true});
    return pod;
  }

  SystemClock clock_;
  kube::Timing timing_ = kube::RealTiming(clock_);
  kube::ApiServer server_;
  kube::Object job_ = server_.Put(kTFJobs, kube::Object(kTFJobs, kJob));
  kube::Connection connection_{server_.config(), clock_, {}};
  kube::Client client_{connection_, timing_};
  kube::Client logs_{connection_, timing_, {.tries = 1}};
  kube::EventRecorder recorder_{connection_, timing_, {}};
  std::vector<kube::ObjectKey> changed_;
  JobCache cache_{clock_, [this](const kube::ObjectKey& key) { changed_.push_back(key); }};
  ClusterWriter writer_{client_, logs_, cache_, recorder_, {}};
};

TEST_F(ClusterWriterTest, APodThatExistsAlreadyLeadsToANewPlan) {
  server_.Put(kube::kPods, OwnPod());

  EXPECT_OK(writer_.Run(job_, {{.kind = Kind::kCreatePod, .object = OwnPod()}}, {}));

  EXPECT_EQ(changed_, std::vector{kJob});
}

TEST_F(ClusterWriterTest, AnAdoptedPodLeadsToANewPlan) {
  const kube::Object pod = server_.Put(kube::kPods, Pod());

  EXPECT_OK(writer_.Run(
      job_, {{.kind = Kind::kAdoptPod, .object = {}, .name = pod.name(), .uid = pod.uid()}}, {}));

  EXPECT_EQ(changed_, std::vector{kJob});
}

TEST_F(ClusterWriterTest, T_R1_AJobThatIsGoneAdoptsNothing) {
  const kube::Object pod = server_.Put(kube::kPods, Pod());
  const std::vector<Action> adopt = {
      {.kind = Kind::kAdoptPod, .object = {}, .name = pod.name(), .uid = pod.uid()}};
  kube::Object other = job_;  // of the same name
  other.metadata()["uid"] = "other";
  EXPECT_THAT(writer_.Run(other, adopt, {}), StatusIs(Code::kAborted));

  server_.Remove(kTFJobs, kJob);
  EXPECT_THAT(writer_.Run(job_, adopt, {}), StatusIs(Code::kAborted));

  EXPECT_TRUE(server_.Get(kube::kPods, kPod)->owners().empty());
}

TEST_F(ClusterWriterTest, ReadsLogsWithTheirOwnClient) {
  server_.Put(kube::kPods, kube::Object(kube::kPods, {"ml", "mnist-shards"}));
  for (const char* pod : {"mnist-shards", "mnist-worker-0"}) {
    server_.SetLog({"ml", pod}, job::ProgressMessage("40 %") + "\n");
    server_.Inject({.part = "/log", .status = 503});
  }

  const auto shards = writer_.ReadShards(job_, {});
  const std::string lines =
      writer_.LastLogLines("ml", {.pod = "mnist-worker-0", .container = "tensorflow"}, {});

  ASSERT_OK(shards);
  EXPECT_EQ(shards->progress, "");
  EXPECT_EQ(lines, "");
  EXPECT_EQ(server_.CountRequests("/log"), 2);
}

TEST_F(ClusterWriterTest, ReadsTheProgressOfAServiceWithASidecar) {
  server_.Put(kube::kPods, kube::Object(kube::kPods, {"ml", "mnist-shards"}));

  ASSERT_OK(writer_.ReadShards(job_, {}));

  // The server refuses to choose one of several containers.
  EXPECT_EQ(server_.CountRequests("/log?container=data-shards&"), 1);
}

TEST_F(ClusterWriterTest, ReadsNoLogFromANodeThatIsLost) {
  kube::Object pod(kube::kPods, {"ml", "mnist-shards"});
  pod.fields()["spec"]["nodeName"] = "n1";
  pod.fields()["status"] = {
      {"phase", "Running"},
      {"conditions", json::array({{{"type", "Ready"}, {"status", "False"}}})}};
  server_.Put(kube::kPods, pod);

  ASSERT_OK(writer_.ReadShards(job_, {}));

  EXPECT_EQ(server_.CountRequests("/log"), 0);
}

TEST_F(ClusterWriterTest, AServiceOfAnotherOwnerIsNotTheOneOfTheDataShards) {
  kube::Object service(kube::kServices, {"ml", "mnist-shards"});
  server_.Put(kube::kServices, service);
  EXPECT_FALSE(writer_.ReadShards(job_, {})->has_service);

  service.AddOwner({.api_version = kTFJobs.api_version(),
                    .kind = std::string(kTFJobs.kind),
                    .name = job_.name(),
                    .uid = job_.uid(),
                    .controller = true});
  server_.Put(kube::kServices, service);
  EXPECT_TRUE(writer_.ReadShards(job_, {})->has_service);
}

TEST_F(ClusterWriterTest, AnOwnPodWithoutItsLabelsIsAnErrorThatNamesTheLabel) {
  kube::Object pod = OwnPod();
  pod.metadata()["labels"].erase(kReplicaIndexLabel);
  server_.Put(kube::kPods, pod);

  const Status status = writer_.Run(job_, {{.kind = Kind::kCreatePod, .object = OwnPod()}}, {});

  EXPECT_THAT(status, StatusIs(Code::kFailedPrecondition));
  EXPECT_THAT(status.message(),
              testing::HasSubstr("does not have the label training.kubeflow.org/replica-index=0"));
}

TEST_F(ClusterWriterTest, ADeletedPodThatDoesNotExistIsRemovedFromTheCache) {
  cache_.JobListener().on_event(kube::WatchEvent::Kind::kAdded, job_);
  kube::Object pod = OwnPod();
  pod.metadata()["uid"] = "pod";
  pod.metadata()["resourceVersion"] = "1000";
  cache_.WrotePod(pod);
  changed_.clear();
  ASSERT_EQ(cache_.Find(kJob)->pods.size(), 1u);

  EXPECT_OK(writer_.Run(
      job_, {{.kind = Kind::kDeletePod, .object = {}, .name = pod.name(), .uid = "pod"}}, {}));

  EXPECT_TRUE(cache_.Find(kJob)->pods.empty());
  EXPECT_EQ(changed_, std::vector{kJob});
}

TEST_F(ClusterWriterTest, SendsNothingOnceTheOperatorEnds) {
  ASSERT_OK(client_.List(kube::kPods, "ml"));  // the connection is open
  std::stop_source stop;
  stop.request_stop();

  const Status status =
      writer_.Run(job_, std::vector<Action>(3, {.kind = Kind::kCreatePod, .object = OwnPod()}),
                  stop.get_token());

  EXPECT_THAT(status, StatusIs(Code::kCancelled));
  ASSERT_OK(client_.List(kube::kPods, "ml"));  // the server has read what was sent before
  EXPECT_EQ(server_.CountRequests("POST "), 0);
}

TEST_F(ClusterWriterTest, AnExceptionInAnActionIsItsError) {
  ClusterWriter writer(client_, logs_, cache_, recorder_,
                       {.may_write = []() -> bool { throw std::runtime_error("no memory"); }});
  const Action action{.kind = Kind::kDeletePod, .object = {}, .name = "a", .uid = "b"};
  for (const size_t actions : {1, 2, 20}) {
    const Status status = writer.Run(job_, std::vector(actions, action), {});
    EXPECT_THAT(status, StatusIs(Code::kInternal));
    EXPECT_EQ(status.message(), "no memory");
  }
}

TEST_F(ClusterWriterTest, Q8_ACreatedPodIsKnownAtOnceAndLeadsToNoNewPlan) {
  cache_.JobListener().on_event(kube::WatchEvent::Kind::kAdded, job_);
  changed_.clear();

  EXPECT_OK(writer_.Run(job_, {{.kind = Kind::kCreatePod, .object = OwnPod()}}, {}));

  EXPECT_EQ(cache_.Find(kJob)->pods.size(), 1u);
  EXPECT_TRUE(changed_.empty());
}

}  // namespace
}  // namespace edl::reconciler
