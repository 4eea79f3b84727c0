#include "reconciler/process/cluster_writer.h"

#include <stdexcept>
#include <string>
#include <vector>

#include "reconciler/labels.h"
#include "reconciler/tfjob.h"
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

TEST_F(ClusterWriterTest, ReadsLogsWithTheirOwnClient) {
  server_.Put(kube::kPods, kube::Object(kube::kPods, {"ml", "mnist-shards"}));
  for (const char* pod : {"mnist-shards", "mnist-worker-0"}) {
    server_.SetLog({"ml", pod}, job::ProgressMessage("40 %") + "\n");
    server_.Inject({.part = "/log", .status = 503});
  }

  const auto shards = writer_.ReadShards(kJob, {});
  const std::string lines =
      writer_.LastLogLines("ml", {.pod = "mnist-worker-0", .container = "tensorflow"}, {});

  ASSERT_OK(shards);
  EXPECT_EQ(shards->progress, "");
  EXPECT_EQ(lines, "");
  EXPECT_EQ(server_.CountRequests("/log"), 2);
}

TEST_F(ClusterWriterTest, ReadsTheProgressOfAServiceWithASidecar) {
  server_.Put(kube::kPods, kube::Object(kube::kPods, {"ml", "mnist-shards"}));

  ASSERT_OK(writer_.ReadShards(kJob, {}));

  // The server refuses to choose one of several containers.
  EXPECT_EQ(server_.CountRequests("/log?container=data-shards&"), 1);
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

TEST_F(ClusterWriterTest, ACreatedPodLeadsToNoNewPlan) {
  EXPECT_OK(writer_.Run(job_, {{.kind = Kind::kCreatePod, .object = OwnPod()}}, {}));

  EXPECT_TRUE(changed_.empty());
}

}  // namespace
}  // namespace edl::reconciler
