#include "reconciler/replica_objects.h"

#include "reconciler/testing/cluster_model.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace edl::reconciler {
namespace {

using nlohmann::json;

json PodJson(const json& job, ReplicaType type = ReplicaType::kWorker, int index = 0,
             const PodSettings& settings = {}) {
  return MakePod(ParsedJob(job), type, index, settings).fields();
}

json& TemplateOf(json& job) { return job["spec"]["tfReplicaSpecs"]["Worker"]["template"]; }

TEST(ReplicaObjects, T_P1_ThePolicyOfARoleIsThatOfItsPods) {
  const auto policy = [](const char* role) {
    return PodJson(JobObject({{"Worker", Role(1, role)}}))["spec"]["restartPolicy"];
  };
  EXPECT_EQ(policy("ExitCode"), "Never");
  EXPECT_EQ(policy("Never"), "Never");
  EXPECT_EQ(policy("OnFailure"), "OnFailure");
  EXPECT_EQ(policy("Always"), "Always");
}

TEST(ReplicaObjects, T_P1_ThePolicyOfATemplateIsOverwritten) {
  json job = JobObject({{"Worker", Role(1, "Never")}});
  EXPECT_FALSE(HasTemplateRestartPolicy(ParsedJob(job).replicas.at(ReplicaType::kWorker)));
  TemplateOf(job)["spec"]["restartPolicy"] = "Always";
  EXPECT_TRUE(HasTemplateRestartPolicy(ParsedJob(job).replicas.at(ReplicaType::kWorker)));
  EXPECT_EQ(PodJson(job)["spec"]["restartPolicy"], "Never");
}

TEST(ReplicaObjects, T_P2_AnotherSchedulerInATemplateIsFound) {
  json job = JobObject({{"Chief", Role(1)}, {"Worker", Role(1)}});
  EXPECT_FALSE(HasOtherScheduler(ParsedJob(job), "volcano"));
  TemplateOf(job)["spec"]["schedulerName"] = "other";
  EXPECT_TRUE(HasOtherScheduler(ParsedJob(job), "volcano"));
  job["spec"]["tfReplicaSpecs"]["Chief"]["template"]["spec"]["schedulerName"] = "other";
  EXPECT_TRUE(HasOtherScheduler(ParsedJob(job), "volcano"));
  EXPECT_FALSE(HasOtherScheduler(ParsedJob(job), "other"));
}

TEST(ReplicaObjects, T_O1_TheJobControlsItsObjects) {
  const json job = JobObject({{"Worker", Role(1)}});
  const json wanted = json::parse(R"([{"apiVersion": "kubeflow.org/v1", "kind": "TFJob",
      "name": "j", "uid": "uid-of-job", "controller": true, "blockOwnerDeletion": true}])");
  EXPECT_EQ(PodJson(job)["metadata"]["ownerReferences"], wanted);
  EXPECT_EQ(
      MakeService(ParsedJob(job), ReplicaType::kWorker, 0).fields()["metadata"]["ownerReferences"],
      wanted);
}

TEST(ReplicaObjects, T_I2_LabelsAndAnnotationsOfTheTemplateAreCopied) {
  json job = JobObject({{"Worker", Role(1)}});
  job["metadata"]["labels"] = {{"of", "the job"}};
  TemplateOf(job)["metadata"] = {{"name", "ignored"},
                                 {"namespace", "ignored"},
                                 {"labels", {{"a", "b"}, {kReplicaIndexLabel, "7"}}},
                                 {"annotations", {{"c", "d"}}},
                                 {"finalizers", json::array({"e/f"})}};
  const json metadata = PodJson(job)["metadata"];
  EXPECT_EQ(metadata["name"], "j-worker-0");
  EXPECT_EQ(metadata["namespace"], "ns");
  EXPECT_EQ(metadata["labels"], json({{"a", "b"},
                                      {kOperatorNameLabel, "tfjob-controller"},
                                      {kJobNameLabel, "j"},
                                      {kReplicaTypeLabel, "worker"},
                                      {kReplicaIndexLabel, "0"},
                                      {kJobRoleLabel, "master"}}));
  EXPECT_EQ(metadata["annotations"], json({{"c", "d"}}));
  EXPECT_EQ(metadata["finalizers"], json::array({"e/f"}));
}

TEST(ReplicaObjects, TheLabelOfTheMasterRoleIsOnTheReplicaThatDecides) {
  const auto is_master = [](const json& job, ReplicaType type, int index) {
    return PodJson(job, type, index)["metadata"]["labels"].contains(kJobRoleLabel);
  };
  const json workers = JobObject({{"Worker", Role(2)}});
  EXPECT_TRUE(is_master(workers, ReplicaType::kWorker, 0));
  EXPECT_FALSE(is_master(workers, ReplicaType::kWorker, 1));
  const json chief = JobObject({{"Chief", Role(1)}, {"Worker", Role(2)}});
  EXPECT_TRUE(is_master(chief, ReplicaType::kChief, 0));
  EXPECT_FALSE(is_master(chief, ReplicaType::kWorker, 0));
}

TEST(ReplicaObjects, OnlyTheTrainingContainerGetsTheClusterConfig) {
  json job = JobObject({{"Worker", Role(2)}});
  TemplateOf(job)["spec"]["initContainers"] = json::array({{{"name", "init"}, {"image", "i"}}});
  json& containers = TemplateOf(job)["spec"]["containers"];
  containers[0]["env"] = json::array({{{"name", "TF_CONFIG"}, {"value", "old"}}});
  containers.push_back({{"name", "sidecar"}, {"image", "i"}});
  const json spec = PodJson(job)["spec"];
  EXPECT_FALSE(spec["initContainers"][0].contains("env"));
  EXPECT_FALSE(spec["containers"][1].contains("env"));
  const json env = spec["containers"][0]["env"];
  ASSERT_EQ(env.size(), 2u);
  // The last one wins.
  EXPECT_EQ(env[1]["name"], "TF_CONFIG");
  EXPECT_THAT(env[1]["value"].get<std::string>(), testing::StartsWith(R"({"cluster")"));
}

TEST(ReplicaObjects, T_I8_AServiceSelectsItsPodByLabels) {
  const kube::Object service =
      MakeService(ParsedJob(JobObject({{"Worker", Role(4)}})), ReplicaType::kWorker, 3);
  EXPECT_EQ(service.key(), (kube::ObjectKey{"ns", "j-worker-3"}));
  const json labels = {{kOperatorNameLabel, "tfjob-controller"},
                       {kJobNameLabel, "j"},
                       {kReplicaTypeLabel, "worker"},
                       {kReplicaIndexLabel, "3"}};
  EXPECT_EQ(FieldAt(service.fields(), {"metadata", "labels"}), labels);
  EXPECT_EQ(service.fields().at("spec"),
            json({{"clusterIP", "None"},
                  {"selector", labels},
                  {"ports", json::array({{{"name", "tfjob-port"}, {"port", 2222}}})}}));
}

json PortsWith(const json& ports) {
  json job = JobObject({{"Worker", Role(1)}});
  TemplateOf(job)["spec"]["containers"][0]["ports"] = ports;
  return MakeService(ParsedJob(job), ReplicaType::kWorker, 0).fields()["spec"]["ports"];
}

TEST(ReplicaObjects, T_I8_Q11_APortWithoutANameGetsOne) {
  EXPECT_EQ(PortsWith(json::array({{{"containerPort", 6006}}})),
            json::array({{{"name", "port-6006"}, {"port", 6006}},
                         {{"name", "tfjob-port"}, {"port", 2222}}}));
}

TEST(ReplicaObjects, Q11_APortIsListedOncePerProtocol) {
  EXPECT_EQ(PortsWith(json::array({{{"containerPort", 2222}},
                                   {{"name", "u"}, {"containerPort", 2222}, {"protocol", "UDP"}}})),
            json::array({{{"name", "port-2222"}, {"port", 2222}},
                         {{"name", "u"}, {"port", 2222}, {"protocol", "UDP"}}}));
}

TEST(ReplicaObjects, Q11_NamesOfPortsAreUnique) {
  EXPECT_EQ(PortsWith(json::array({{{"containerPort", 53}},
                                   {{"containerPort", 53}, {"protocol", "UDP"}},
                                   {{"containerPort", 54}},
                                   {{"name", "port-54"}, {"containerPort", 55}},
                                   {{"name", "tfjob-port"}, {"containerPort", 2222}}})),
            json::array({{{"name", "port-53"}, {"port", 53}},
                         {{"name", "port-53-udp"}, {"port", 53}, {"protocol", "UDP"}},
                         {{"name", "port-54-x"}, {"port", 54}},
                         {{"name", "port-54"}, {"port", 55}},
                         {{"name", "tfjob-port"}, {"port", 2222}}}));
}

TEST(ReplicaObjects, TheSizeOfAPodIsThatOfItsValuesAndNotOfItsText) {
  json job = JobObject({{"Worker", Role(1)}});
  const size_t small = ApproximatePodSize(ParsedJob(job), ReplicaType::kWorker);
  TemplateOf(job)["spec"]["x"] = json::array();
  for (int i = 0; i < 1000; ++i) TemplateOf(job)["spec"]["x"].push_back(json::array());
  EXPECT_GT(ApproximatePodSize(ParsedJob(job), ReplicaType::kWorker), small + 64'000);
}

TEST(ReplicaObjects, T_I8_APortWithoutANumberIsReplacedByTheDefault) {
  EXPECT_EQ(PortsWith(json::array({{{"name", "tfjob-port"}}, {{"containerPort", 70000}}})),
            json::array({{{"name", "tfjob-port"}, {"port", 2222}}}));
}

TEST(ReplicaObjects, GangSchedulingMarksPods) {
  const json job = JobObject({{"Worker", Role(1)}});
  const json volcano = PodJson(job, ReplicaType::kWorker, 0, {.gang_scheduler = "volcano"});
  EXPECT_EQ(volcano["spec"]["schedulerName"], "volcano");
  EXPECT_EQ(volcano["metadata"]["annotations"]["scheduling.k8s.io/group-name"], "j");
  EXPECT_EQ(volcano["metadata"]["annotations"]["volcano.sh/task-spec"], "worker");
  const json plugin = PodJson(job, ReplicaType::kWorker, 0, {.gang_scheduler = "coscheduling"});
  EXPECT_EQ(plugin["spec"]["schedulerName"], "coscheduling");
  EXPECT_EQ(plugin["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"], "j");
}

}  // namespace
}  // namespace edl::reconciler
