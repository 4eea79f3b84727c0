#include "reconciler/cluster_config.h"

#include <algorithm>

#include "reconciler/testing/cluster_model.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace edl::reconciler {
namespace {

using nlohmann::json;

json InNs2(json job) {
  job["metadata"]["namespace"] = "ns2";
  return job;
}

TEST(ClusterConfig, T_I9_AJobWithOneReplicaHasNone) {
  const TFJob job = ParsedJob(JobObject({{"Worker", Role(1)}}));
  EXPECT_EQ(ClusterConfig(job, ReplicaType::kWorker, 0, ""), "");
  EXPECT_EQ(ClusterConfig(job, ReplicaType::kWorker, 0, "tf.training.org"), "");
}

TEST(ClusterConfig, T_I9_AllReplicasAreListedWithTheDomain) {
  const TFJob job = ParsedJob(InNs2(JobObject({{"Worker", Role(1)}, {"PS", Role(1)}})));
  EXPECT_EQ(ClusterConfig(job, ReplicaType::kWorker, 0, "tf.training.org"),
            R"({"cluster":{"ps":["j-ps-0.ns2.svc.tf.training.org:2222"],)"
            R"("worker":["j-worker-0.ns2.svc.tf.training.org:2222"]},)"
            R"("task":{"type":"worker","index":0},"environment":"cloud"})");
}

TEST(ClusterConfig, T_I9_TheEvaluatorIsPartOfTheCluster) {
  const TFJob job =
      ParsedJob(JobObject({{"Worker", Role(1)}, {"PS", Role(2)}, {"Evaluator", Role(1)}}));
  EXPECT_EQ(ClusterConfig(job, ReplicaType::kPs, 1, ""),
            R"({"cluster":{"evaluator":["j-evaluator-0.ns.svc:2222"],)"
            R"("ps":["j-ps-0.ns.svc:2222","j-ps-1.ns.svc:2222"],)"
            R"("worker":["j-worker-0.ns.svc:2222"]},)"
            R"("task":{"type":"ps","index":1},"environment":"cloud"})");
  EXPECT_EQ(ClusterConfig(job, ReplicaType::kEvaluator, 0, "d"),
            R"({"cluster":{"evaluator":["j-evaluator-0.ns.svc.d:2222"],)"
            R"("ps":["j-ps-0.ns.svc.d:2222","j-ps-1.ns.svc.d:2222"],)"
            R"("worker":["j-worker-0.ns.svc.d:2222"]},)"
            R"("task":{"type":"evaluator","index":0},"environment":"cloud"})");
}

TEST(ClusterConfig, AnAnnotationLeavesTheEvaluatorOut) {
  json object = JobObject({{"Chief", Role(1)}, {"Evaluator", Role(1)}});
  object["metadata"]["annotations"] = {{kEvaluatorInCluster, "false"}};
  const TFJob job = ParsedJob(object);
  EXPECT_EQ(ClusterConfig(job, ReplicaType::kChief, 0, ""),
            R"({"cluster":{"chief":["j-chief-0.ns.svc:2222"]},)"
            R"("task":{"type":"chief","index":0},"environment":"cloud"})");
  // The evaluator itself still learns what it is.
  EXPECT_EQ(ClusterConfig(job, ReplicaType::kEvaluator, 0, ""),
            R"({"cluster":{"chief":["j-chief-0.ns.svc:2222"]},)"
            R"("task":{"type":"evaluator","index":0},"environment":"cloud"})");
}

TEST(ClusterConfig, EachRoleHasItsOwnPort) {
  json object = JobObject({{"Worker", Role(1)}, {"PS", Role(1)}});
  object["spec"]["tfReplicaSpecs"]["PS"]["template"]["spec"]["containers"][0]["ports"] =
      json::array({{{"name", "tfjob-port"}, {"containerPort", 3333}}});
  EXPECT_EQ(ClusterConfig(ParsedJob(object), ReplicaType::kPs, 0, ""),
            R"({"cluster":{"ps":["j-ps-0.ns.svc:3333"],"worker":["j-worker-0.ns.svc:2222"]},)"
            R"("task":{"type":"ps","index":0},"environment":"cloud"})");
}

TEST(ClusterConfig, T_S1_WithDynamicWorkersAReplicaKnowsItselfAndTheServers) {
  json object = JobObject({{"Worker", Role(4)}, {"PS", Role(2)}, {"Evaluator", Role(1)}});
  object["spec"]["enableDynamicWorker"] = true;
  const TFJob job = ParsedJob(object);
  EXPECT_EQ(ClusterConfig(job, ReplicaType::kWorker, 0, ""),
            R"({"cluster":{"worker":{"0":"j-worker-0.ns.svc:2222"},)"
            R"("ps":["j-ps-0.ns.svc:2222","j-ps-1.ns.svc:2222"]},)"
            R"("task":{"type":"worker","index":0}})");
  EXPECT_EQ(ClusterConfig(job, ReplicaType::kPs, 0, ""),
            R"({"cluster":{"worker":{},"ps":["j-ps-0.ns.svc:2222"]},)"
            R"("task":{"type":"ps","index":0}})");
  EXPECT_EQ(ClusterConfig(job, ReplicaType::kEvaluator, 0, ""),
            R"({"cluster":{"worker":{},"ps":[]},"task":{"type":"evaluator","index":0}})");
}

TEST(ClusterConfig, T_S1_WithDynamicWorkersAndNoServersTheListIsNull) {
  json object = JobObject({{"Worker", Role(2)}});
  object["spec"]["enableDynamicWorker"] = true;
  EXPECT_EQ(ClusterConfig(ParsedJob(object), ReplicaType::kWorker, 1, ""),
            R"({"cluster":{"worker":{"1":"j-worker-1.ns.svc:2222"},"ps":null},)"
            R"("task":{"type":"worker","index":1}})");
}

TEST(ClusterConfig, T_I10_AJobIsDistributedUnlessItHasOneReplica) {
  const auto distributed = [](const json& roles) {
    json job = JobObject(roles);
    return ParsedJob(job).distributed();
  };
  EXPECT_FALSE(distributed({{"Worker", Role(1)}}));
  EXPECT_TRUE(distributed({{"Worker", Role(1)}, {"PS", Role(1)}}));
  EXPECT_TRUE(distributed({{"Chief", Role(1)}, {"Worker", Role(1)}}));
  // A job with one PS and nothing else is not valid; one with a role of 0 replicas is.
  EXPECT_FALSE(distributed({{"Chief", Role(1)}, {"PS", Role(0)}}));
}

TEST(ClusterConfig, TheLongestOneIsThatOfTheLastReplica) {
  json object = JobObject({{"Chief", Role(1)}, {"PS", Role(11)}, {"Worker", Role(12)}});
  for (const bool dynamic : {false, true}) {
    object["spec"]["enableDynamicWorker"] = dynamic;
    const TFJob job = ParsedJob(object);
    size_t longest = 0;
    for (const auto& [type, spec] : job.replicas) {
      for (int i = 0; i < spec.replicas; ++i) {
        longest = std::max(longest, ClusterConfig(job, type, i, "domain").size());
      }
    }
    EXPECT_EQ(LongestClusterConfig(job, "domain"), longest);
  }
  EXPECT_EQ(LongestClusterConfig(ParsedJob(JobObject({{"Worker", Role(1)}})), ""), 0u);
}

}  // namespace
}  // namespace edl::reconciler
