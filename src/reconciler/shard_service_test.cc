#include "reconciler/shard_service.h"

#include <map>

#include "reconciler/labels.h"
#include "reconciler/replica_objects.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "job/progress.h"

namespace edl::reconciler {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;

TFJob Job(kube::Object::Labels annotations = {{kDataShards, "true"}}) {
  TFJob job;
  job.key = {"ml", "mnist"};
  job.uid = "0a1b2c3d-0000-0000-0000-000000000001";
  job.annotations = std::move(annotations);
  const json pod_template = {
      {"spec",
       {{"imagePullSecrets", {{{"name", "registry"}}}},
        {"containers", {{{"name", "tensorflow"}, {"image", "i"}}, {{"name", "sidecar"}}}}}}};
  job.replicas[ReplicaType::kWorker] = {.replicas = 3, .pod_template = pod_template};
  job.replicas[ReplicaType::kPs] = {.replicas = 1, .pod_template = pod_template};
  return job;
}

std::map<std::string, std::string> VariablesOf(const json& container) {
  std::map<std::string, std::string> out;
  for (const json& variable : ListAt(container, {"env"})) {
    out[TextIn(variable, "name")] = TextIn(variable, "value");
  }
  return out;
}

TEST(ShardService, TellsReplicasWhoTheyAreAndWhereTheServiceIs) {
  const TFJob job = Job();

  const kube::Object pod = MakePod(job, ReplicaType::kWorker, 2, {});

  const json& containers = pod.fields()["spec"]["containers"];
  const auto variables = VariablesOf(containers[0]);
  EXPECT_EQ(variables.at("MASTER_ADDR"), "mnist-shards.ml.svc:50001");
  EXPECT_EQ(variables.at("DLROVER_MASTER_ADDR"), "mnist-shards.ml.svc:50001");
  EXPECT_EQ(variables.at("WORKER_ID"), "2");
  EXPECT_EQ(variables.at("WORKER_TYPE"), "worker");
  EXPECT_EQ(variables.at("WORKER_NUM"), "3");
  EXPECT_EQ(variables.at("ELASTICDL_REPLICA_ID"), "2");
  EXPECT_TRUE(VariablesOf(containers[1]).empty());
}

TEST(ShardService, GivesEachRoleItsOwnRangeOfWorkerIds) {
  const auto variables =
      VariablesOf(MakePod(Job(), ReplicaType::kPs, 0, {}).fields()["spec"]["containers"][0]);
  EXPECT_EQ(variables.at("WORKER_ID"), "3000000");
  EXPECT_EQ(variables.at("WORKER_TYPE"), "ps");
}

TEST(ShardService, ShowsItsTokenOnlyInItsSecret) {
  const TFJob job = Job();
  const std::string secret = MakeShardSecret(job, "t0k3n").name();

  const kube::Object replica = MakePod(job, ReplicaType::kWorker, 0, {});
  const kube::Object pod = MakeShardPod(job, "image");

  EXPECT_THAT(secret, HasSubstr(job.uid));  // no other job has ever used the name
  for (const kube::Object* object : {&replica, &pod}) {
    const std::string text = Dump(object->fields());
    EXPECT_THAT(text, HasSubstr(secret));
    EXPECT_EQ(text.find("t0k3n"), std::string::npos);
  }
}

TEST(ShardService, AddsNothingToJobsWithoutTheAnnotation) {
  const kube::Object pod = MakePod(Job({}), ReplicaType::kWorker, 0, {});
  EXPECT_FALSE(VariablesOf(pod.fields()["spec"]["containers"][0]).contains("MASTER_ADDR"));
}

TEST(ShardService, IsNotAReplicaOfTheJobButBelongsToIt) {
  const TFJob job = Job();
  for (const kube::Object& object :
       {MakeShardPod(job, "image"), MakeShardNetworkService(job), MakeShardSecret(job, "t")}) {
    EXPECT_EQ(SlotOf(object), std::nullopt);
    EXPECT_EQ(object.label(kReplicaTypeLabel), std::nullopt);
    ASSERT_TRUE(ControllerOf(object).has_value());
    EXPECT_EQ(ControllerOf(object)->uid, job.uid);
  }
}

TEST(ShardService, SelectsItsPod) {
  const TFJob job = Job();
  const kube::Object pod = MakeShardPod(job, "image");
  const kube::Object service = MakeShardNetworkService(job);
  EXPECT_EQ(pod.name(), service.name());
  for (const auto& [name, value] : service.fields()["spec"]["selector"].items()) {
    EXPECT_EQ(pod.label(name), value);
  }
  // Replicas have the other labels of the job.
  EXPECT_EQ(MakePod(job, ReplicaType::kWorker, 0, {}).label("tfjob.elasticdl.org/component"),
            std::nullopt);
}

TEST(ShardService, RunsAMasterThatLaunchesNothingAndHasNoCredentials) {
  const kube::Object pod = MakeShardPod(Job(), "registry/elasticdl:1");
  const json& spec = pod.fields()["spec"];
  const json& container = spec["containers"][0];
  EXPECT_EQ(container["image"], "registry/elasticdl:1");
  EXPECT_THAT(container["args"].get<std::vector<std::string>>(),
              Contains("--external_replicas=true"));
  EXPECT_THAT(container["args"].get<std::vector<std::string>>(),
              Contains("--submission_id=0a1b2c3d000000000000000000000001"));
  EXPECT_EQ(spec["automountServiceAccountToken"], false);
  EXPECT_EQ(spec["restartPolicy"], "Always");
  EXPECT_EQ(spec["imagePullSecrets"][0]["name"], "registry");
}

TEST(ShardService, IsAdmittedByTheRestrictedPodSecurityStandard) {
  const kube::Object pod = MakeShardPod(Job({{kDataShards, "true"}, {kDataShardsClaim, "d"}}), "i");
  const json& spec = pod.fields()["spec"];
  EXPECT_EQ(spec["securityContext"]["runAsNonRoot"], true);
  EXPECT_EQ(spec["securityContext"]["runAsUser"], 65532);
  EXPECT_EQ(spec["securityContext"]["runAsGroup"], 65532);
  EXPECT_EQ(spec["securityContext"]["fsGroup"], 65532);
  EXPECT_EQ(spec["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
  const json& container = spec["containers"][0]["securityContext"];
  EXPECT_EQ(container["allowPrivilegeEscalation"], false);
  EXPECT_EQ(container["capabilities"]["drop"], json::array({"ALL"}));
}

TEST(ShardService, KeepsItsLedgerOnTheClaimOfTheAnnotation) {
  const auto state_of = [](const kube::Object& pod) -> json {
    return pod.fields()["spec"]["volumes"].back();
  };
  EXPECT_TRUE(state_of(MakeShardPod(Job(), "i")).contains("emptyDir"));
  const TFJob claimed = Job({{kDataShards, "true"}, {kDataShardsClaim, "disk"}});
  EXPECT_EQ(state_of(MakeShardPod(claimed, "i"))["persistentVolumeClaim"]["claimName"], "disk");
}

TEST(ShardService, HasThePriorityOfTheMostImportantRole) {
  TFJob job = Job();
  job.replicas[ReplicaType::kWorker].pod_template["spec"]["priorityClassName"] = "low";
  job.replicas[ReplicaType::kPs].pod_template["spec"]["priorityClassName"] = "high";
  EXPECT_EQ(MakeShardPod(job, "i").fields()["spec"]["priorityClassName"], "high");
}

TEST(ShardService, AcceptsTheLongestNameOfATFJob) {
  TFJob job = Job();
  job.key.name = std::string(38, 'a') + "-" + std::string(15, 'b');
  EXPECT_THAT(MakeShardPod(job, "i")
                  .fields()["spec"]["containers"][0]["args"]
                  .get<std::vector<std::string>>(),
              Contains("--job_name=" + std::string(38, 'a')));
}

kube::Object RunningPod(const json& container_status) {
  kube::Object pod = MakeShardPod(Job(), "i");
  pod.metadata()["uid"] = "u";
  json status = container_status;
  status["name"] = "data-shards";
  pod.fields()["status"] = {{"phase", "Running"}, {"containerStatuses", {status}}};
  return pod;
}

TEST(ShardService, ReadsItsProgressFromItsLog) {
  const kube::Object pod = RunningPod({{"state", {{"running", json::object()}}}});
  const ShardService service = ReadShardService(pod, "x\n" + job::ProgressMessage("40 %") + "\n");
  EXPECT_EQ(service.progress, "40 %");
  EXPECT_EQ(service.failure, "");
  EXPECT_EQ(service.pod->outcome, PodOutcome::kActive);
}

TEST(ShardService, HasGivenUpWhenItsMasterEndedTheJob) {
  const json exit = {{"exitCode", 1}, {"message", "one\nthe job ends: 3 shards failed\n"}};
  const kube::Object pod = RunningPod({{"state", {{"waiting", {{"reason", "CrashLoopBackOff"}}}}},
                                       {"lastState", {{"terminated", exit}}}});
  EXPECT_EQ(ReadShardService(pod, "").failure, "exit code 1: the job ends: 3 shards failed");
}

TEST(ShardService, HasNotGivenUpWhenItsContainerWasKilled) {
  const kube::Object pod = RunningPod({{"state", {{"running", json::object()}}},
                                       {"lastState", {{"terminated", {{"exitCode", 137}}}}}});
  EXPECT_EQ(ReadShardService(pod, "").failure, "");
}

}  // namespace
}  // namespace edl::reconciler
