#include "backend/kubernetes/pod_maker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.h"
#include "job/train_flags.h"

namespace edl::backend::kubernetes {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const kube::OwnerReference kMaster{
    .api_version = "v1", .kind = "Pod", .name = "elasticdl-iris-master", .uid = "u-1"};

PodMaker Maker(std::map<std::string, std::string> given = {}) {
  FlagValues flags(job::TrainFlags());
  given.insert({{"job_name", "iris"}, {"job_command", "train"}, {"image_name", "elasticdl:1"}});
  for (const auto& [flag, value] : given) {
    EXPECT_EQ(flags.Set(flag, value, FlagSource::kCommandLine), Ok());
  }
  const auto job = job::MakeJobSpec(flags);
  const auto options = backend::MakeClusterOptions(flags);
  EXPECT_TRUE(job.ok() && options.ok()) << job.status() << options.status();
  return {*job, *options, "ml"};
}

job::ReplicaSpec Worker() {
  return {.name = "iris-edljob-worker-4",
          .role = job::Role::kWorker,
          .index = 0,
          .id = 4,
          .command = {"/bin/bash", "-c", "train"},
          .env = {{"MASTER_ADDR", "m:1"}}};
}

json Names(const json& list) {
  json names = json::array();
  for (const json& item : list) names.push_back(item["name"]);
  return names;
}

TEST(PodMaker, MakesAReplicasPod) {
  const json pod = Maker({{"worker_resource_request", "cpu=0.3,memory=1024Mi,disk=1Gi"},
                          {"worker_resource_limit", "cpu=1,memory=2048Mi"},
                          {"worker_pod_priority", "low"},
                          {"image_pull_policy", "Never"}})
                       .ReplicaPod(Worker(), kMaster)
                       .fields();

  EXPECT_EQ(pod["metadata"]["name"], "iris-edljob-worker-4");
  EXPECT_EQ(pod["metadata"]["namespace"], "ml");
  EXPECT_EQ(pod["metadata"]["labels"], (json{{"app", "elasticdl"},
                                             {"elasticdl-job-name", "iris"},
                                             {"elasticdl-replica-type", "worker"},
                                             {"elasticdl-replica-index", "0"},
                                             {"elasticdl-replica-id", "4"}}));
  EXPECT_EQ(pod["metadata"]["ownerReferences"][0]["uid"], "u-1");
  EXPECT_EQ(pod["metadata"]["ownerReferences"][0]["controller"], true);
  const json& spec = pod["spec"];
  EXPECT_EQ(spec["priorityClassName"], "low");
  EXPECT_EQ(spec["restartPolicy"], "Never");
  EXPECT_EQ(spec["automountServiceAccountToken"], false);
  const json& container = spec["containers"][0];
  EXPECT_EQ(container["name"], "iris-edljob-worker-4");
  EXPECT_EQ(container["image"], "elasticdl:1");
  EXPECT_EQ(container["imagePullPolicy"], "Never");
  EXPECT_EQ(container["command"], (json{"/bin/bash", "-c", "train"}));
  EXPECT_EQ(container["resources"]["requests"],
            (json{{"cpu", "0.3"}, {"memory", "1024Mi"}, {"ephemeral-storage", "1Gi"}}));
  EXPECT_EQ(container["resources"]["limits"], (json{{"cpu", "1"}, {"memory", "2048Mi"}}));
  EXPECT_THAT(container["env"], Contains(json{{"name", "MASTER_ADDR"}, {"value", "m:1"}}));
  EXPECT_THAT(Names(container["env"]), Contains("MY_POD_IP"));
}

TEST(PodMaker, LetsKubernetesReplaceNothingInAUsersText) {
  job::ReplicaSpec spec = Worker();
  spec.command = {"/bin/bash", "-c", "echo $$ $(date) $HOME"};
  spec.env = {{"PRICE", "$(A)$"}};
  const json container = Maker().ReplicaPod(spec, kMaster).fields()["spec"]["containers"][0];
  EXPECT_EQ(container["command"][2], "echo $$$$ $$(date) $$HOME");
  EXPECT_THAT(container["env"], Contains(json{{"name", "PRICE"}, {"value", "$$(A)$$"}}));
}

TEST(PodMaker, ShowsAReplicaNothingOfTheJobsSecretButItsToken) {
  const json pod = Maker().ReplicaPod(Worker(), kMaster).fields();
  EXPECT_EQ(pod["spec"]["volumes"][0]["secret"]["items"],
            json::parse(R"([{"key": "token", "path": "token"}])"));
}

TEST(PodMaker, GivesMoreMemoryAfterItRanOut) {
  job::ReplicaSpec spec = Worker();
  spec.memory_limit_bytes = int64_t{3} << 30;
  const json resources = Maker({{"worker_resource_limit", "memory=2048Mi"}})
                             .ReplicaPod(spec, kMaster)
                             .fields()["spec"]["containers"][0]["resources"];
  EXPECT_EQ(resources["limits"]["memory"], "3221225472");
  EXPECT_EQ(resources["requests"]["memory"], "3221225472");
}

TEST(PodMaker, MountsWhatTheUserWants) {
  job::ReplicaSpec spec = Worker();
  spec.volumes = {{.host_path = "/a", .type = job::HostPathType::kDirectory, .mount_path = "/data"},
                  {.claim_name = "c", .mount_path = "/x", .sub_path = "one"},
                  {.claim_name = "c", .mount_path = "/y", .sub_path = "two"}};
  const json pod = Maker().ReplicaPod(spec, kMaster).fields();

  const json& volumes = pod["spec"]["volumes"];
  ASSERT_EQ(volumes.size(), 3);
  EXPECT_EQ(volumes[0]["persistentVolumeClaim"]["claimName"], "c");
  EXPECT_EQ(volumes[1]["hostPath"], (json{{"path", "/a"}, {"type", "Directory"}}));
  const json& mounts = pod["spec"]["containers"][0]["volumeMounts"];
  EXPECT_EQ(mounts[0], (json{{"name", "volume-1"}, {"mountPath", "/data"}}));
  EXPECT_EQ(mounts[1], (json{{"name", "volume-0"}, {"mountPath", "/x"}, {"subPath", "one"}}));
  EXPECT_EQ(mounts[2]["subPath"], "two");
}

TEST(PodMaker, TakesVariablesFromSecrets) {
  const json pod = Maker({{"env_secret", "KEY=aws/key"}}).ReplicaPod(Worker(), kMaster).fields();
  EXPECT_THAT(pod["spec"]["containers"][0]["env"],
              Contains(json{{"name", "KEY"},
                            {"valueFrom", {{"secretKeyRef", {{"name", "aws"}, {"key", "key"}}}}}}));
}

TEST(PodMaker, AdaptsPodsToTheCluster) {
  const json pod = Maker({{"cluster_spec_json", R"({"pod_spec": {"labels": {"team": "ads"}}})"}})
                       .ReplicaPod(Worker(), kMaster)
                       .fields();
  EXPECT_EQ(pod["metadata"]["labels"]["team"], "ads");
}

TEST(PodMaker, PointsTheServiceOfASlotAtItsReplica) {
  const json service = Maker({{"need_tf_config", "true"}}).SlotService(Worker(), kMaster).fields();
  EXPECT_EQ(service["metadata"]["name"], "iris-edljob-worker-0");
  EXPECT_EQ(service["spec"]["selector"]["elasticdl-replica-id"], "4");
  EXPECT_EQ(service["spec"]["selector"]["elasticdl-replica-type"], "worker");
  EXPECT_EQ(service["spec"]["ports"][0]["port"], 3333);
  EXPECT_EQ(service["metadata"]["ownerReferences"][0]["uid"], "u-1");
}

TEST(PodMaker, NamesThePortsOfMetricsForPrometheus) {
  const json master = Maker().MasterPod().fields();
  EXPECT_EQ(master["spec"]["containers"][0]["ports"], json::parse(R"([{"containerPort": 50001},
                            {"name": "http-metrics", "containerPort": 50002}])"));
}

TEST(PodMaker, AddressesSlotsByTheirServices) {
  EXPECT_EQ(Maker().AddressOf(job::Role::kPs, 1), "iris-edljob-ps-1.ml.svc:2222");
  EXPECT_EQ(Maker().AddressOf(job::Role::kChief, 0), "iris-edljob-chief-0.ml.svc:3333");
  EXPECT_EQ(Maker().MasterAddress(), "elasticdl-iris-master.ml.svc:50001");
  EXPECT_FALSE(Maker().HasService(job::Role::kWorker));
  EXPECT_TRUE(Maker().HasService(job::Role::kPs));
  EXPECT_TRUE(Maker({{"need_tf_config", "true"}}).HasService(job::Role::kWorker));
}

TEST(PodMaker, MakesTheMastersPod) {
  const json pod =
      Maker({{"service_account", "trainer"}, {"master_pod_priority", "high"}}).MasterPod().fields();
  EXPECT_EQ(pod["metadata"]["name"], "elasticdl-iris-master");
  EXPECT_EQ(pod["metadata"]["labels"]["elasticdl-replica-type"], "master");
  EXPECT_EQ(pod["spec"]["serviceAccountName"], "trainer");
  EXPECT_EQ(pod["spec"]["priorityClassName"], "high");
  EXPECT_TRUE(pod["spec"]["volumes"][0].contains("emptyDir"));
  EXPECT_EQ(pod["spec"]["containers"][0]["command"], (json{"elasticdl", "supervise"}));
}

TEST(PodMaker, KeepsTheLedgerOnTheJobsClaim) {
  const json pod = Maker({{"volume", "claim_name=c,mount_path=/data"}}).MasterPod().fields();
  const json& mounts = pod["spec"]["containers"][0]["volumeMounts"];
  EXPECT_THAT(mounts, Contains(json{{"name", "volume-0"},
                                    {"mountPath", "/var/lib/elasticdl"},
                                    {"subPath", ".elasticdl/iris"}}));
  EXPECT_EQ(pod["spec"]["volumes"].size(), 2) << "the claim once, and the job's secret";
}

TEST(PodMaker, LetsAMasterThatIsNotRootWriteToTheClaim) {
  const json claimed = Maker({{"volume", "claim_name=c,mount_path=/data"}}).MasterPod().fields();
  EXPECT_EQ(claimed["spec"]["securityContext"]["fsGroup"], 65532);
  EXPECT_EQ(claimed["spec"]["securityContext"]["fsGroupChangePolicy"], "OnRootMismatch");
  EXPECT_FALSE(Maker().MasterPod().fields()["spec"]["securityContext"].contains("fsGroup"))
      << "anybody may write to an emptyDir";
}

TEST(PodMaker, AsksForNoMoreRightsThanAPodNeeds) {
  for (const json& pod :
       {Maker().MasterPod().fields(), Maker().ReplicaPod(Worker(), kMaster).fields()}) {
    const json& container = pod["spec"]["containers"][0];
    EXPECT_EQ(container["securityContext"], json::parse(R"({"allowPrivilegeEscalation": false,
                                                            "capabilities": {"drop": ["ALL"]}})"));
    EXPECT_EQ(pod["spec"]["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
  }
}

TEST(PodMaker, KeepsVariablesOfTheUserSecret) {
  const PodMaker maker = Maker({{"envs", "KEY=s3cret$"}});
  job::ReplicaSpec spec = Worker();
  spec.env["KEY"] = "s3cret$";
  const json reference = {
      {"name", "KEY"},
      {"valueFrom", {{"secretKeyRef", {{"name", "elasticdl-iris-master"}, {"key", "env.KEY"}}}}}};
  for (const json& pod : {maker.MasterPod().fields(), maker.ReplicaPod(spec, kMaster).fields()}) {
    EXPECT_THAT(pod["spec"]["containers"][0]["env"], Contains(reference));
    EXPECT_THAT(pod.dump(), Not(HasSubstr("s3cret")));
  }
  const json secret = maker.JobSecret("{}", "t0ken").fields();
  EXPECT_EQ(DecodeBase64(secret["data"]["env.KEY"].get<std::string>()).value(), "s3cret$");
}

TEST(PodMaker, DoesNotBlockTheDeletionOfTheOwner) {
  const json pod = Maker().ReplicaPod(Worker(), kMaster).fields();
  EXPECT_FALSE(pod["metadata"]["ownerReferences"][0].contains("blockOwnerDeletion"));
}

TEST(PodMaker, HidesTheJobInASecret) {
  const json secret = Maker().JobSecret("{}", "t0ken").fields();
  EXPECT_EQ(secret["metadata"]["name"], "elasticdl-iris-master");
  EXPECT_EQ(DecodeBase64(secret["data"]["token"].get<std::string>()).value(), "t0ken");
}

}  // namespace
}  // namespace edl::backend::kubernetes
