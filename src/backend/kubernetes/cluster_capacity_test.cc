#include "backend/kubernetes/cluster_capacity.h"

#include <gtest/gtest.h>

#include "kube/resource.h"

namespace edl::backend::kubernetes {
namespace {

kube::Object Node(const std::string& name, const std::string& cpu) {
  kube::Object node(kube::kNodes, {"", name});
  node.set_label("zone", name);
  node.fields()["status"]["allocatable"] = {{"cpu", cpu}, {"memory", "8Gi"}, {"pods", "110"}};
  node.fields()["status"]["conditions"] = {{{"type", "Ready"}, {"status", "True"}}};
  return node;
}

kube::Object Pod(const std::string& cpu, const std::string& node = "", int priority = 0) {
  kube::Object pod(kube::kPods, {"ml", "p"});
  pod.fields()["spec"] = {{"nodeName", node}, {"priority", priority}};
  pod.fields()["spec"]["containers"][0]["resources"]["requests"] = {{"cpu", cpu},
                                                                    {"memory", "1Gi"}};
  pod.fields()["status"]["phase"] = "Running";
  return pod;
}

TEST(ClusterCapacity, IsAllocatableMinusRequests) {
  ClusterCapacity capacity({Node("a", "4"), Node("b", "2")}, {Pod("1500m", "a")});
  EXPECT_EQ(capacity.Place(Pod("1"), 0, 10), 4);  // 2.5 and 2 cores
  EXPECT_EQ(capacity.Place(Pod("1"), 0, 10), 0);
  EXPECT_EQ(capacity.Place(Pod("500m"), 0, 10), 1);
}

TEST(ClusterCapacity, CountsEveryResource) {
  ClusterCapacity capacity({Node("a", "64")}, {});
  EXPECT_EQ(capacity.Place(Pod("1"), 0, 100), 8) << "8Gi of memory, 1Gi each";
  kube::Object accelerated = Pod("1");
  accelerated.fields()["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = "1";
  EXPECT_FALSE(capacity.FitsAlone(accelerated));
}

TEST(ClusterCapacity, IsNotTakenByPodsThatHaveEnded) {
  kube::Object ended = Pod("4", "a");
  ended.fields()["status"]["phase"] = "Succeeded";
  ClusterCapacity capacity({Node("a", "4")}, {ended});
  EXPECT_EQ(capacity.Place(Pod("4"), 0, 1), 1);
}

TEST(ClusterCapacity, IncludesPodsOfLowerPriority) {
  ClusterCapacity capacity({Node("a", "4")}, {Pod("4", "a", 10)});
  EXPECT_EQ(capacity.Place(Pod("1"), 10, 1), 0);
  EXPECT_EQ(capacity.Place(Pod("1"), 11, 1), 1);
}

TEST(ClusterCapacity, ExcludesNodesThatRejectThePod) {
  kube::Object cordoned = Node("cordoned", "4");
  cordoned.fields()["spec"]["unschedulable"] = true;
  kube::Object lost = Node("lost", "4");
  lost.fields()["status"]["conditions"][0]["status"] = "Unknown";
  kube::Object tainted = Node("tainted", "4");
  tainted.fields()["spec"]["taints"] = {
      {{"key", "gpu"}, {"value", "yes"}, {"effect", "NoSchedule"}}};
  const ClusterCapacity capacity({cordoned, lost, tainted}, {});
  kube::Object pod = Pod("1");
  EXPECT_EQ(capacity.CountNodesFor(pod), 0);
  EXPECT_FALSE(capacity.FitsAlone(pod));

  pod.fields()["spec"]["tolerations"] = {{{"key", "gpu"}, {"value", "yes"}}};
  EXPECT_EQ(capacity.CountNodesFor(pod), 1);
  pod.fields()["spec"]["tolerations"] = {{{"key", "gpu"}, {"operator", "Exists"}}};
  EXPECT_EQ(capacity.CountNodesFor(pod), 1);
  pod.fields()["spec"]["tolerations"] = {{{"key", "gpu"}, {"value", "no"}}};
  EXPECT_EQ(capacity.CountNodesFor(pod), 0);
}

TEST(ClusterCapacity, KnowsSelectors) {
  const ClusterCapacity capacity({Node("a", "1"), Node("b", "8")}, {});
  kube::Object pod = Pod("4");
  EXPECT_TRUE(capacity.FitsAlone(pod));
  pod.fields()["spec"]["nodeSelector"] = {{"zone", "a"}};
  EXPECT_FALSE(capacity.FitsAlone(pod));
  EXPECT_EQ(Show(capacity.LargestFor(pod)), "cpu=1, memory=8Gi, pods=110");
}

}  // namespace
}  // namespace edl::backend::kubernetes
