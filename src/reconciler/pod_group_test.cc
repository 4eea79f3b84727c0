#include "reconciler/pod_group.h"

#include "reconciler/testing/cluster_model.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace edl::reconciler {
namespace {

using nlohmann::json;

json RoleWith(int replicas, const json& resources, const std::string& priority = "") {
  json role = Role(replicas);
  json& spec = role["template"]["spec"];
  spec["containers"][0]["resources"] = resources;
  if (!priority.empty()) spec["priorityClassName"] = priority;
  return role;
}

json SpecOf(const json& job, const std::string& scheduler,
            const std::map<std::string, int64_t>& priorities = {}) {
  return MakePodGroup(ParsedJob(job), {}, scheduler, priorities).fields()["spec"];
}

TEST(PodGroup, EachSchedulerHasItsOwnKind) {
  json job = JobObject({{"Worker", Role(2)}});
  job["metadata"]["annotations"] = {{"a", "b"}};
  const kube::Object volcano = MakePodGroup(ParsedJob(job), {}, "volcano", {});
  EXPECT_EQ(volcano.fields()["apiVersion"], "scheduling.volcano.sh/v1beta1");
  EXPECT_EQ(volcano.fields()["spec"], json({{"minMember", 2}, {"queue", "default"}}));
  EXPECT_EQ(volcano.annotations(), (kube::Object::Labels{{"a", "b"}}));
  EXPECT_EQ(volcano.owners().at(0).uid, kJobUid);
  const kube::Object plugin = MakePodGroup(ParsedJob(job), {}, "coscheduling", {});
  EXPECT_EQ(plugin.fields()["apiVersion"], "scheduling.x-k8s.io/v1alpha1");
  EXPECT_EQ(plugin.fields()["spec"], json({{"minMember", 2}}));
}

TEST(PodGroup, ThePolicyOfTheJobIsUsed) {
  json job = JobObject({{"Worker", Role(2)}});
  job["spec"]["runPolicy"]["schedulingPolicy"] = {{"minAvailable", 1},
                                                  {"queue", "q"},
                                                  {"priorityClass", "high"},
                                                  {"minResources", {{"cpu", "3"}}},
                                                  {"scheduleTimeoutSeconds", 7}};
  EXPECT_EQ(SpecOf(job, "volcano"), json({{"minMember", 1},
                                          {"queue", "q"},
                                          {"priorityClassName", "high"},
                                          {"minResources", {{"cpu", "3"}}}}));
  EXPECT_EQ(
      SpecOf(job, "plugin"),
      json({{"minMember", 1}, {"scheduleTimeoutSeconds", 7}, {"minResources", {{"cpu", "3"}}}}));
}

TEST(PodGroup, RequestsAreAddedAndLimitsFillTheGaps) {
  const json job = JobObject(
      {{"Chief", RoleWith(1, {{"requests", {{"cpu", "500m"}}}, {"limits", {{"memory", "1Gi"}}}})},
       {"Worker", RoleWith(2, {{"limits", {{"cpu", 1}}}})}});
  EXPECT_EQ(SpecOf(job, "plugin")["minResources"],
            json({{"cpu", "2500m"}, {"memory", "1073741824"}}));
}

TEST(PodGroup, Q10_ThePodsWithTheHighestPriorityAreCountedFirst) {
  json job = JobObject({{"Chief", RoleWith(1, {{"requests", {{"cpu", "1"}}}}, "low")},
                        {"Worker", RoleWith(1, {{"requests", {{"cpu", "8"}}}}, "high")}});
  job["spec"]["runPolicy"]["schedulingPolicy"]["minAvailable"] = 1;
  EXPECT_EQ(SpecOf(job, "plugin", {{"low", 1}, {"high", 2}})["minResources"]["cpu"], "8");
  EXPECT_EQ(SpecOf(job, "plugin", {{"low", 2}, {"high", 1}})["minResources"]["cpu"], "1");
}

TEST(PodGroup, Q10_AGroupThatAgreesIsNotWritten) {
  const TFJob job = ParsedJob(JobObject({{"Worker", Role(2)}}));
  const kube::Object wanted = MakePodGroup(job, {}, "volcano", {});
  kube::Object stored = wanted;
  stored.set_resource_version("7");
  stored.fields()["status"] = {{"phase", "Running"}};
  stored.fields()["spec"]["queue"] = "chosen";
  EXPECT_EQ(UpdatedPodGroup(stored, wanted), std::nullopt);
  const kube::Object larger =
      MakePodGroup(ParsedJob(JobObject({{"Worker", Role(3)}})), {}, "volcano", {});
  const kube::Object updated = UpdatedPodGroup(stored, larger).value();
  EXPECT_EQ(updated.fields().at("spec"), json({{"minMember", 3}, {"queue", "chosen"}}));
  EXPECT_EQ(updated.resource_version(), "7");
}

TEST(PodGroup, Q10_AGroupWithOtherNotationsOfTheSameAmountsIsNotWritten) {
  json job = JobObject({{"Worker", Role(2)}});
  json& amounts = job["spec"]["runPolicy"]["schedulingPolicy"]["minResources"];
  amounts = {{"cpu", "0.5"}, {"memory", "500000000"}};
  const kube::Object wanted = MakePodGroup(ParsedJob(job), {}, "volcano", {});
  kube::Object stored = wanted;
  json& written = stored.fields()["spec"]["minResources"];
  written = {{"cpu", "500m"}, {"memory", "500M"}};
  EXPECT_EQ(UpdatedPodGroup(stored, wanted), std::nullopt);
  for (const json& other : {json{{"cpu", "501m"}, {"memory", "500M"}}, json{{"cpu", "500m"}},
                            json{{"cpu", "500m"}, {"disk", "500M"}}, json("500m")}) {
    written = other;
    EXPECT_TRUE(UpdatedPodGroup(stored, wanted).has_value()) << Dump(other);
  }
}

TEST(PodGroup, OnlyVolcanoMakesPodsWait) {
  const TFJob job = ParsedJob(JobObject({{"Worker", Role(2)}}));
  kube::Object group = MakePodGroup(job, {}, "volcano", {});
  EXPECT_TRUE(IsWaiting(group));
  group.fields()["status"] = {{"phase", "Pending"}};
  EXPECT_TRUE(IsWaiting(group));
  group.fields()["status"] = {{"phase", "Inqueue"}};
  EXPECT_FALSE(IsWaiting(group));
  EXPECT_FALSE(IsWaiting(MakePodGroup(job, {}, "plugin", {})));
  EXPECT_FALSE(IsWaiting(kube::Object(json{{"apiVersion", 7}})));
}

TEST(PodGroup, HugeQuantitiesDoNotOverflow) {
  const json job =
      JobObject({{"Worker", RoleWith(10'000, {{"limits", {{"cpu", "9007199254740"}}}})}});
  EXPECT_EQ(SpecOf(job, "plugin")["minMember"], 10'000);
  EXPECT_FALSE(SpecOf(job, "plugin")["minResources"]["cpu"].get<std::string>().starts_with("-"));
}

TEST(PodGroup, LargeQuantitiesAreAddedExactly) {
  const json job = JobObject({{"Worker", RoleWith(16, {{"requests", {{"memory", "1Ti"}}}})}});
  EXPECT_EQ(SpecOf(job, "plugin")["minResources"]["memory"], "17592186044416");
}

TEST(PodGroup, QuantitiesBelowZeroAreIgnored) {
  const json job = JobObject({{"Worker", RoleWith(2'000, {{"requests", {{"cpu", "-9E"}}}})}});
  EXPECT_FALSE(SpecOf(job, "plugin").contains("minResources"));
}

TEST(PodGroup, Q14_ReplicasThatHaveEndedAreNoMembers) {
  json object = JobObject({{"Chief", RoleWith(1, {{"requests", {{"cpu", "1"}}}})},
                           {"Worker", RoleWith(4, {{"requests", {{"cpu", "1"}}}})}});
  const auto spec_of = [&] {
    return MakePodGroup(ParsedJob(object), {{ReplicaType::kWorker, 2}}, "plugin", {})
        .fields()["spec"];
  };
  EXPECT_EQ(spec_of(), json({{"minMember", 3}, {"minResources", {{"cpu", "3"}}}}));
  object["spec"]["runPolicy"]["schedulingPolicy"]["minAvailable"] = 5;
  EXPECT_EQ(spec_of()["minMember"], 3);
  object["spec"]["runPolicy"]["schedulingPolicy"]["minAvailable"] = 2;
  EXPECT_EQ(spec_of()["minMember"], 2);
}

TEST(PodGroup, T_E2E2_AMinimumAboveTheNumberOfReplicasIsKept) {
  json job = JobObject({{"Worker", Role(1)}});
  job["spec"]["runPolicy"]["schedulingPolicy"]["minAvailable"] = 10;
  EXPECT_EQ(SpecOf(job, "plugin")["minMember"], 10);
}

}  // namespace
}  // namespace edl::reconciler
