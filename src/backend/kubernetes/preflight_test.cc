#include "backend/kubernetes/preflight.h"

#include <algorithm>
#include <map>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "backend/cluster_options.h"
#include "job/job_spec.h"
#include "job/train_flags.h"
#include "kube/connection.h"
#include "kube/resource.h"
#include "kube/testing/api_server.h"

namespace edl::backend::kubernetes {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using CheckResult = Finding::CheckResult;

constexpr const char* kMaster = "system:serviceaccount:ml:default";

class PreflightTest : public testing::Test {
 protected:
  PreflightTest() {
    server_.Put(kube::kNamespaces, kube::Object(kube::kNamespaces, {"", "ml"}));
    server_.Put(kube::kServiceAccounts, kube::Object(kube::kServiceAccounts, {"ml", "default"}));
    AddNode("node-a", "64");
  }

  void AddNode(const std::string& name, const std::string& cpu) {
    kube::Object node(kube::kNodes, {"", name});
    node.fields()["status"] = {
        {"allocatable", {{"cpu", cpu}, {"memory", "256Gi"}, {"pods", "110"}}},
        {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}};
    server_.Put(kube::kNodes, node);
  }

  void AddClass(const std::string& name, int value) {
    kube::Object priority(kube::kPriorityClasses, {"", name});
    priority.fields()["value"] = value;
    server_.Put(kube::kPriorityClasses, priority);
  }

  void AddClaim(const std::string& phase, const std::string& storage_class) {
    kube::Object claim(kube::kPersistentVolumeClaims, {"ml", "data"});
    claim.fields()["spec"]["storageClassName"] = storage_class;
    claim.fields()["status"]["phase"] = phase;
    server_.Put(kube::kPersistentVolumeClaims, claim);
  }

  void Forbid(const std::string& part) {
    server_.Inject({.part = part,
                    .times = 100,
                    .status = 403,
                    .body = R"({"kind": "Status", "code": 403, "reason": "Forbidden",
                                "message": "user jane cannot do that"})"});
  }

  std::vector<Finding> Run(std::map<std::string, std::string> given = {},
                           Depth depth = Depth::kAll) {
    given.insert({{"job_name", "iris"},
                  {"job_command", "train"},
                  {"image_name", "iris:1"},
                  {"worker_resource_request", "cpu=1,memory=1Gi"}});
    FlagValues flags(job::TrainFlags());
    for (const auto& [flag, value] : given) {
      EXPECT_EQ(flags.Set(flag, value, FlagSource::kCommandLine), Ok());
    }
    const Submission submission{.job = *job::MakeJobSpec(flags),
                                .options = *backend::MakeClusterOptions(flags)};
    return Preflight(client_, "ml", submission).Run(depth);
  }

  // The finding about `what`.
  static Finding Of(const std::string& what, const std::vector<Finding>& findings) {
    const auto found = std::find_if(findings.begin(), findings.end(),
                                    [&](const Finding& one) { return one.what == what; });
    if (found != findings.end()) return *found;
    ADD_FAILURE() << "no finding about " << what;
    return {};
  }

  static std::vector<Finding> Missing(const std::vector<Finding>& findings) {
    std::vector<Finding> out;
    std::copy_if(findings.begin(), findings.end(), std::back_inserter(out),
                 [](const Finding& one) { return one.result == CheckResult::kMissing; });
    return out;
  }

  kube::ApiServer server_;
  SystemClock clock_;
  kube::Connection connection_{server_.config(), clock_, {}};
  kube::Client client_{connection_, kube::RealTiming(clock_), {.tries = 1}};
};

MATCHER_P2(Is, result, detail, "") {
  *result_listener << NameOf(arg.result) << ": " << arg.detail;
  return arg.result == result && arg.detail.find(detail) != std::string::npos;
}

TEST_F(PreflightTest, FindsNothingMissingWhereAllIsThere) {
  const std::vector<Finding> found = Run();
  EXPECT_THAT(Missing(found), IsEmpty());
  EXPECT_THAT(found.front(), Is(CheckResult::kOk, "version v1.30.0"));
  EXPECT_THAT(Of("the master's permissions", found),
              Is(CheckResult::kOk, "granted to service account default"));
  EXPECT_THAT(Of("quota", found), Is(CheckResult::kOk, "has none"));
  EXPECT_THAT(Of("capacity", found), Is(CheckResult::kOk, "all replicas fit"));
}

TEST_F(PreflightTest, AsksForWhatTheManifestAllowsTheMaster) {
  std::set<std::string> allowed;
  const YAML::Node role =
      YAML::LoadAllFromFile(EDL_SOURCE_DIR "/elasticdl/manifests/elasticdl-rbac.yaml").front();
  for (const YAML::Node& rule : role["rules"]) {
    for (const YAML::Node& resource : rule["resources"]) {
      for (const YAML::Node& verb : rule["verbs"]) {
        allowed.insert(verb.as<std::string>() + " " + rule["apiGroups"][0].as<std::string>() + "/" +
                       resource.as<std::string>());
      }
    }
  }
  std::set<std::string> asked;
  for (const Act& act : ActsOfMaster()) {
    asked.insert(fmt::format("{} {}/{}{}{}", act.verb, act.resource.group, act.resource.plural,
                             act.subresource.empty() ? "" : "/", act.subresource));
  }
  EXPECT_EQ(asked, allowed);
}

TEST_F(PreflightTest, EndsWithAClusterThatDoesNotAnswer) {
  server_.Inject({.part = "GET /version", .status = 503});
  const std::vector<Finding> found = Run();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found.front(), Is(CheckResult::kMissing, "check that the cluster of"));
  EXPECT_TRUE(found.front().blocks);
  EXPECT_THAT(found.front().fix, HasSubstr("kubectl cluster-info"));
}

TEST_F(PreflightTest, SaysWhenCredentialsAreRefused) {
  server_.Inject({.part = "GET /version", .times = 2, .status = 401});
  const std::vector<Finding> found = Run();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found.front().fix, HasSubstr("log in again"));
}

TEST_F(PreflightTest, EndsWithANamespaceThatIsNotThere) {
  server_.Remove(kube::kNamespaces, {"", "ml"});
  const std::vector<Finding> found = Run();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found.back(), Is(CheckResult::kMissing, "does not exist"));
  EXPECT_TRUE(found.back().blocks);
  EXPECT_THAT(found.back().fix, HasSubstr("kubectl create namespace ml"));
}

TEST_F(PreflightTest, NamesMissingPermissionsOfTheCaller) {
  server_.Deny("", "create pods");
  server_.Deny("", "create secrets");
  server_.Deny("", "get pods/log");
  const std::vector<Finding> found = Run();
  const Finding submit = Of("permission to submit jobs", found);
  EXPECT_THAT(submit, Is(CheckResult::kMissing, "you may not create secrets, create pods"));
  EXPECT_TRUE(submit.blocks);
  EXPECT_THAT(submit.fix, HasSubstr("kubectl -n ml create rolebinding"));
  const Finding control = Of("permission to inspect and control jobs", found);
  EXPECT_THAT(control, Is(CheckResult::kMissing, "you may not get pods/log"));
  EXPECT_FALSE(control.blocks);
}

TEST_F(PreflightTest, SuggestsTheManifestIfTheMasterLacksPermissions) {
  server_.Deny(kMaster, "create pods");
  server_.Deny(kMaster, "patch configmaps");
  const Finding found = Of("the master's permissions", Run());
  EXPECT_THAT(found, Is(CheckResult::kMissing,
                        "service account default may not create pods, patch configmaps"));
  EXPECT_TRUE(found.blocks);
  EXPECT_EQ(found.fix, "kubectl -n ml apply -f elasticdl/manifests/elasticdl-rbac.yaml");
}

TEST_F(PreflightTest, BindsTheRoleToAnAccountOfItsOwn) {
  const Finding absent = Of("service account trainer", Run({{"service_account", "trainer"}}));
  EXPECT_THAT(absent, Is(CheckResult::kMissing, "does not exist"));
  EXPECT_TRUE(absent.blocks);
  server_.Put(kube::kServiceAccounts, kube::Object(kube::kServiceAccounts, {"ml", "trainer"}));
  server_.Deny("system:serviceaccount:ml:trainer", "watch pods");
  const Finding found = Of("the master's permissions", Run({{"service_account", "trainer"}}));
  EXPECT_FALSE(found.blocks);
  EXPECT_THAT(found.fix, HasSubstr("--serviceaccount=ml:trainer"));
}

TEST_F(PreflightTest, ComparesThePrioritiesOfMasterAndWorkers) {
  AddClass("low", -10);
  AddClass("high", 1000);
  EXPECT_THAT(Missing(Run({{"worker_pod_priority", "high"}})), IsEmpty());
  const Finding found = Of("priority of the master",
                           Run({{"worker_pod_priority", "high"}, {"master_pod_priority", "low"}}));
  EXPECT_THAT(found,
              Is(CheckResult::kMissing, "its value -10 is lower than 1000, that of a worker"));
  EXPECT_THAT(found.fix, HasSubstr("--master_pod_priority"));
}

TEST_F(PreflightTest, AsksTheServersAdmission) {
  server_.Inject({.part = "POST /api/v1/namespaces/ml/pods?dryRun=All",
                  .status = 403,
                  .body = R"({"kind": "Status", "code": 403, "reason": "Forbidden", "message":
      "pods is forbidden: violates PodSecurity \"restricted:latest\": runAsNonRoot != true"})"});
  server_.Inject({.part = "POST /api/v1/namespaces/ml/services?dryRun=All",
                  .status = 403,
                  .body = R"({"kind": "Status", "code": 403, "reason": "Forbidden", "message":
      "services is forbidden: exceeded quota: few, requested: services=1"})"});
  const std::vector<Finding> found = Run();
  const Finding master = Of("admission of a master", found);
  EXPECT_THAT(master, Is(CheckResult::kMissing, "runAsNonRoot != true"));
  EXPECT_THAT(master.fix, HasSubstr("pod-security.kubernetes.io/enforce=baseline"));
  EXPECT_THAT(Of("admission of services", found), Is(CheckResult::kMissing, "exceeded quota: few"));
}

TEST_F(PreflightTest, AsksForLeasesOnlyWhereALedgerIsShared) {
  AddClaim("Bound", "");
  server_.Deny(kMaster, "update leases");
  EXPECT_EQ(Of("the master's permissions", Run()).result, CheckResult::kOk);
  EXPECT_THAT(Of("the master's permissions", Run({{"volume", "claim_name=data,mount_path=/d"}})),
              Is(CheckResult::kMissing, "update leases"));
}

TEST_F(PreflightTest, CannotTellWhatItMayNotSee) {
  Forbid("localsubjectaccessreviews");
  Forbid("/nodes");
  Forbid("priorityclasses");
  Forbid("persistentvolumeclaims");
  Forbid("resourcequotas");
  const std::vector<Finding> found =
      Run({{"master_pod_priority", "high"}, {"volume", "claim_name=data,mount_path=/d"}});
  EXPECT_THAT(Missing(found), IsEmpty());
  for (const char* what :
       {"the master's permissions", "priority class high", "claim data", "quota", "capacity"}) {
    EXPECT_EQ(Of(what, found).result, CheckResult::kCannotTell) << what;
  }
}

TEST_F(PreflightTest, LooksForEveryPriorityClassOfAFraction) {
  AddClass("high", 1000);
  const std::vector<Finding> found = Run({{"worker_pod_priority", "0.5"}, {"num_workers", "2"}});
  EXPECT_THAT(Of("priority class high", found), Is(CheckResult::kOk, "1000"));
  const Finding low = Of("priority class low", found);
  EXPECT_THAT(low, Is(CheckResult::kMissing, "does not exist"));
  EXPECT_TRUE(low.blocks);
  EXPECT_EQ(low.fix, "kubectl apply -f elasticdl/manifests/priority-classes.yaml");
}

TEST_F(PreflightTest, WantsClaimsThatAPodCanUse) {
  const std::map<std::string, std::string> flags = {{"volume", "claim_name=data,mount_path=/d"}};
  EXPECT_TRUE(Of("claim data", Run(flags)).blocks);

  AddClaim("Bound", "slow");
  EXPECT_THAT(Of("claim data", Run(flags)), Is(CheckResult::kOk, "bound"));

  AddClaim("Pending", "slow");
  const Finding pending = Of("claim data", Run(flags));
  EXPECT_THAT(pending, Is(CheckResult::kMissing, "is not bound (phase Pending)"));
  EXPECT_FALSE(pending.blocks);
  EXPECT_EQ(pending.fix, "kubectl -n ml describe pvc data");

  kube::Object storage(kube::kStorageClasses, {"", "slow"});
  storage.fields()["volumeBindingMode"] = "WaitForFirstConsumer";
  server_.Put(kube::kStorageClasses, storage);
  EXPECT_THAT(Of("claim data", Run(flags)), Is(CheckResult::kOk, "when the first pod uses it"));
}

TEST_F(PreflightTest, WantsSecretsWithTheirKeys) {
  const std::map<std::string, std::string> flags = {{"env_secret", "KEY=aws/key"},
                                                    {"image_pull_secrets", "registry"}};
  EXPECT_THAT(Of("secret aws", Run(flags)).fix,
              HasSubstr("create secret generic aws --from-literal=key=..."));
  EXPECT_THAT(Of("pull secret registry", Run(flags)).fix, HasSubstr("docker-registry registry"));

  kube::Object aws(kube::kSecrets, {"ml", "aws"});
  aws.fields()["data"]["id"] = "eA==";
  server_.Put(kube::kSecrets, aws);
  kube::Object registry(kube::kSecrets, {"ml", "registry"});
  registry.fields()["type"] = "Opaque";
  server_.Put(kube::kSecrets, registry);
  EXPECT_THAT(Of("secret aws", Run(flags)), Is(CheckResult::kMissing, "has no key key"));
  EXPECT_THAT(Of("pull secret registry", Run(flags)), Is(CheckResult::kMissing, "has type Opaque"));

  aws.fields()["data"]["key"] = "eA==";
  server_.Put(kube::kSecrets, aws);
  registry.fields()["type"] = "kubernetes.io/dockerconfigjson";
  server_.Put(kube::kSecrets, registry);
  EXPECT_THAT(Missing(Run(flags)), IsEmpty());
}

TEST_F(PreflightTest, KnowsAnImageThatANodeHas) {
  EXPECT_THAT(Of("image iris:1", Run()), Is(CheckResult::kCannotTell, "when a pod pulls it"));
  kube::Object node = server_.Get(kube::kNodes, {"", "node-a"}).value();
  node.fields()["status"]["images"] = {{{"names", {"docker.io/library/iris:1"}}}};
  server_.Put(kube::kNodes, node);
  EXPECT_THAT(Of("image iris:1", Run({{"image_pull_policy", "IfNotPresent"}})),
              Is(CheckResult::kOk, "node node-a has it"));
  EXPECT_THAT(Of("image iris:1", Run({{"image_pull_policy", "Always"}})),
              Is(CheckResult::kCannotTell,
                 "node node-a has it, but the pull policy Always pulls it again"));
  EXPECT_EQ(Of("image team/iris:1", Run({{"worker_image", "team/iris:1"}})).result,
            CheckResult::kCannotTell);
}

TEST_F(PreflightTest, SaysWhatIsTooLargeForEveryNode) {
  const std::vector<Finding> found = Run({{"worker_resource_request", "cpu=65,memory=1Gi"}});
  EXPECT_THAT(Of("capacity for a worker", found),
              Is(CheckResult::kMissing,
                 "it requests cpu=65, memory=1Gi, but the largest node has cpu=64, memory=256Gi"));
  EXPECT_THAT(Of("capacity for a worker", found).fix, HasSubstr("--worker_resource_request"));
}

TEST_F(PreflightTest, SaysHowManyWorkersFitNow) {
  const std::map<std::string, std::string> flags = {{"num_workers", "4"},
                                                    {"worker_resource_request", "cpu=30"},
                                                    {"master_resource_request", "cpu=1"}};
  EXPECT_THAT(Of("capacity", Run(flags)), Is(CheckResult::kOk, "2 of 4 workers fit now"));

  kube::Object other(kube::kPods, {"elsewhere", "other"});
  other.fields()["spec"]["nodeName"] = "node-a";
  other.fields()["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "60";
  server_.Put(kube::kPods, other);
  EXPECT_THAT(Of("capacity", Run(flags)),
              Is(CheckResult::kMissing, "not enough free resources for one worker (cpu=30)"));
}

TEST_F(PreflightTest, AsksLittleBeforeASubmission) {
  AddClass("high", 1);
  AddClaim("Pending", "slow");
  const std::vector<Finding> found =
      Run({{"master_pod_priority", "high"}, {"volume", "claim_name=data,mount_path=/d"}},
          Depth::kBlockers);
  EXPECT_THAT(Missing(found), IsEmpty());
  EXPECT_LE(server_.requests().size(), 10u);
  EXPECT_EQ(server_.CountRequests("/nodes"), 0);
}

TEST_F(PreflightTest, ChangesNothing) {
  Run();
  for (const std::string& request : server_.requests()) {
    const bool asks = request.find("accessreviews") != std::string::npos ||
                      request.find("dryRun=All") != std::string::npos;
    EXPECT_TRUE(request.starts_with("GET ") || asks) << request;
  }
}

}  // namespace
}  // namespace edl::backend::kubernetes
