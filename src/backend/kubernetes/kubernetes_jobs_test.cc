#include "backend/kubernetes/kubernetes_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/testing/status_matchers.h"
#include "job/job_view.h"
#include "job/train_flags.h"
#include "kube/resource.h"
#include "kube/testing/api_server.h"

namespace edl::backend::kubernetes {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kStatus = job::JobView{.name = "iris"}.ToJson();
const kube::ObjectKey kMaster{"ml", "elasticdl-iris-master"};

class KubernetesJobsTest : public testing::Test {
 protected:
  static Submission Iris(const std::string& spec = R"({"job_name": "iris"})") {
    FlagValues flags(job::TrainFlags());
    for (const auto& [flag, value] : std::map<std::string, std::string>{
             {"job_name", "iris"}, {"job_command", "train"}, {"image_name", "elasticdl:1"}}) {
      EXPECT_EQ(flags.Set(flag, value, FlagSource::kCommandLine), Ok());
    }
    return {.job = *job::MakeJobSpec(flags),
            .options = *backend::MakeClusterOptions(flags),
            .spec_json = spec,
            .status_json = kStatus};
  }

  void SetPhase(const std::string& phase) {
    kube::Object pod = server_.Get(kube::kPods, kMaster).value();
    pod.fields()["status"] = {{"phase", phase}};
    server_.Put(kube::kPods, pod);
  }

  void PutWorker(int id, const std::string& phase) {
    kube::Object pod(kube::kPods, {"ml", fmt::format("iris-edljob-worker-{}", id)});
    pod.set_label("app", "elasticdl");
    pod.set_label("elasticdl-job-name", "iris");
    pod.set_label("elasticdl-replica-type", "worker");
    pod.fields()["status"] = {{"phase", phase}};
    server_.Put(kube::kPods, pod);
  }

  bool IsThere(const kube::Resource& resource) { return server_.Get(resource, kMaster).ok(); }

  kube::ApiServer server_;
  SystemClock clock_;
  KubernetesJobs jobs_{
      std::make_unique<kube::Connection>(server_.config(), clock_, std::vector<std::string>{}),
      kube::RealTiming(clock_), "ml"};
};

TEST_F(KubernetesJobsTest, SubmitsAllThatAMasterNeeds) {
  ASSERT_EQ(jobs_.Submit(Iris()), Ok());

  const auto pod = server_.Get(kube::kPods, kMaster);
  ASSERT_OK(pod);
  const auto service = server_.Get(kube::kServices, kMaster);
  ASSERT_OK(service);
  EXPECT_EQ(service->owners().front().uid, pod->uid());
  const auto secret = server_.Get(kube::kSecrets, kMaster);
  ASSERT_OK(secret);
  EXPECT_EQ(DecodeBase64(secret->fields()["data"]["token"].get<std::string>())->size(), 32u);
  EXPECT_EQ(jobs_.SpecOf("iris").value(), R"({"job_name": "iris"})");
}

TEST_F(KubernetesJobsTest, RefusesANameThatIsTaken) {
  ASSERT_EQ(jobs_.Submit(Iris()), Ok());
  const Status again = jobs_.Submit(Iris());
  EXPECT_THAT(again, StatusIs(Code::kAlreadyExists));
  EXPECT_THAT(again.message(), HasSubstr("job iris already exists in namespace ml"));
}

TEST_F(KubernetesJobsTest, LeavesNothingOfWhatItCouldNotSubmit) {
  server_.Inject({.part = "POST /api/v1/namespaces/ml/pods",
                  .status = 403,
                  .body = R"({"kind": "Status", "code": 403, "reason": "Forbidden",
                              "message": "pods is forbidden: no PriorityClass high"})"});

  const Status submitted = jobs_.Submit(Iris());

  EXPECT_THAT(submitted, StatusIs(Code::kPermissionDenied));
  EXPECT_THAT(submitted.message(), HasSubstr("no PriorityClass high"));
  for (const kube::Resource& resource :
       {kube::kPods, kube::kServices, kube::kSecrets, kube::kConfigMaps}) {
    EXPECT_FALSE(IsThere(resource)) << resource.plural;
  }
}

TEST_F(KubernetesJobsTest, FindsAJobAndTheReasonWhyItsMasterDoesNotRun) {
  EXPECT_THAT(jobs_.Find("iris"), StatusIs(Code::kNotFound));
  ASSERT_EQ(jobs_.Submit(Iris()), Ok());
  EXPECT_TRUE(jobs_.Find("iris")->running);
  EXPECT_EQ(jobs_.Find("iris")->status_json, kStatus);

  kube::Object pod = server_.Get(kube::kPods, kMaster).value();
  pod.fields()["status"] = json::parse(R"({"phase": "Pending", "containerStatuses": [
      {"name": "m", "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}]})");
  server_.Put(kube::kPods, pod);

  EXPECT_EQ(jobs_.Find("iris")->trouble, "its master waits: ErrImagePull: not found");
  const auto all = jobs_.List();
  ASSERT_EQ(all->size(), 1u);
  EXPECT_EQ(all->front().name, "iris");
}

TEST_F(KubernetesJobsTest, GoesOnWithAJobWhoseMasterIsGone) {
  ASSERT_EQ(jobs_.Submit(Iris()), Ok());
  EXPECT_THAT(jobs_.Resume(Iris()), StatusIs(Code::kFailedPrecondition));
  server_.Remove(kube::kPods, kMaster);
  EXPECT_FALSE(jobs_.Find("iris")->running);
  const kube::Object token = server_.Get(kube::kSecrets, kMaster).value();

  ASSERT_EQ(jobs_.Resume(Iris(R"({"job_name": "iris", "num_workers": 3})")), Ok());

  EXPECT_TRUE(jobs_.Find("iris")->running);
  EXPECT_THAT(jobs_.SpecOf("iris").value(), HasSubstr("num_workers"));
  EXPECT_EQ(server_.Get(kube::kSecrets, kMaster)->fields()["data"]["token"],
            token.fields()["data"]["token"]);
}

TEST_F(KubernetesJobsTest, DoesNotDeleteTheMasterOfAnotherResume) {
  ASSERT_EQ(jobs_.Submit(Iris()), Ok());
  SetPhase("Failed");
  const kube::Object old = server_.Get(kube::kPods, kMaster).value();
  // The other one replaces the pod after this one has read it.
  server_.Remove(kube::kPods, kMaster);
  const kube::Object other = server_.Put(kube::kPods, kube::Object(kube::kPods, kMaster));
  ASSERT_NE(other.uid(), old.uid());
  server_.Inject({.part = "GET /api/v1/namespaces/ml/pods/elasticdl-iris-master",
                  .times = 2,
                  .status = 200,
                  .body = old.fields().dump()});

  EXPECT_FALSE(jobs_.Resume(Iris()).ok());

  const auto left = server_.Get(kube::kPods, kMaster);
  ASSERT_OK(left);
  EXPECT_EQ(left->uid(), other.uid());
}

TEST_F(KubernetesJobsTest, SendsRequestsAsAnnotationsOfTheMastersPod) {
  ASSERT_EQ(jobs_.Submit(Iris()), Ok());
  SetPhase("Running");
  ASSERT_EQ(jobs_.Scale("iris", 7), Ok());
  ASSERT_EQ(jobs_.Stop("iris", "enough"), Ok());
  const kube::Object::Labels notes = server_.Get(kube::kPods, kMaster)->annotations();
  EXPECT_EQ(notes.at("elasticdl.org/num-workers"), "7");
  EXPECT_EQ(notes.at("elasticdl.org/stop"), "enough");
}

TEST_F(KubernetesJobsTest, StopsAJobWhoseMasterDoesNotRunYet) {
  ASSERT_EQ(jobs_.Submit(Iris()), Ok());
  SetPhase("Pending");

  ASSERT_EQ(jobs_.Stop("iris", "enough"), Ok());

  EXPECT_FALSE(IsThere(kube::kPods));
  EXPECT_THAT(jobs_.Find("iris")->status_json, HasSubstr("stopped"));
}

TEST_F(KubernetesJobsTest, DeletesAllOfAJob) {
  ASSERT_EQ(jobs_.Submit(Iris()), Ok());
  ASSERT_EQ(jobs_.Delete("iris"), Ok());
  EXPECT_THAT(jobs_.Find("iris"), StatusIs(Code::kNotFound));
  EXPECT_EQ(jobs_.Delete("iris"), Ok());
}

TEST_F(KubernetesJobsTest, DeletesNothingThatASubmissionDidNotMake) {
  ASSERT_EQ(jobs_.Submit(Iris()), Ok());
  SetPhase("Running");
  server_.Remove(kube::kConfigMaps, kMaster);  // by hand

  const Status again = jobs_.Submit(Iris());

  EXPECT_THAT(again, StatusIs(Code::kAlreadyExists));
  for (const kube::Resource& resource : {kube::kPods, kube::kServices, kube::kSecrets}) {
    EXPECT_TRUE(IsThere(resource)) << resource.plural;
  }
  EXPECT_TRUE(jobs_.Find("iris")->running) << "it can still be found, and stopped";
  ASSERT_EQ(jobs_.Stop("iris", "enough"), Ok());
  EXPECT_EQ(server_.Get(kube::kPods, kMaster)->annotations().at("elasticdl.org/stop"), "enough");
}

TEST_F(KubernetesJobsTest, EndsWhatAMasterLeftBehindThatDoesNotRunAnyMore) {
  ASSERT_EQ(jobs_.Submit(Iris()), Ok());
  SetPhase("Failed");
  PutWorker(0, "Running");
  PutWorker(1, "Succeeded");
  EXPECT_EQ(jobs_.CountRunningPods("iris").value(), 1);

  ASSERT_EQ(jobs_.Stop("iris", "enough"), Ok());

  EXPECT_EQ(jobs_.CountRunningPods("iris").value(), 0);
  EXPECT_THAT(jobs_.Pods("iris").value(),
              ElementsAre("elasticdl-iris-master", "iris-edljob-worker-1"));
  server_.Remove(kube::kPods, kMaster);
  PutWorker(2, "Pending");
  ASSERT_EQ(jobs_.Stop("iris", "enough"), Ok());
  EXPECT_EQ(jobs_.CountRunningPods("iris").value(), 0);
}

TEST_F(KubernetesJobsTest, EndsWhatIsLeftBehindWithoutTheRightToDeleteManyAtOnce) {
  ASSERT_EQ(jobs_.Submit(Iris()), Ok());
  SetPhase("Failed");
  PutWorker(0, "Running");
  server_.Inject({.part = "DELETE /api/v1/namespaces/ml/pods?", .status = 403});

  ASSERT_EQ(jobs_.Stop("iris", "enough"), Ok());

  EXPECT_EQ(jobs_.CountRunningPods("iris").value(), 0);
}

TEST_F(KubernetesJobsTest, TakesAJobForEndedWhoseMasterHasThoughASidecarRuns) {
  ASSERT_EQ(jobs_.Submit(Iris()), Ok());
  kube::Object pod = server_.Get(kube::kPods, kMaster).value();
  pod.fields()["status"] = json::parse(R"({"phase": "Running", "containerStatuses": [
      {"name": "elasticdl-iris-master", "state": {"terminated": {"exitCode": 0}}},
      {"name": "proxy", "ready": true, "state": {"running": {}}}]})");
  server_.Put(kube::kPods, pod);

  EXPECT_FALSE(jobs_.Find("iris")->running);
  EXPECT_EQ(jobs_.Resume(Iris()), Ok());
  EXPECT_TRUE(jobs_.Find("iris")->running);
}

TEST_F(KubernetesJobsTest, SaysWhyAMasterIsGone) {
  ASSERT_EQ(jobs_.Submit(Iris()), Ok());
  kube::Object map = server_.Get(kube::kConfigMaps, kMaster).value();
  map.set_annotation("elasticdl.org/interrupted", "its master was terminated: preempted");
  server_.Put(kube::kConfigMaps, map);
  EXPECT_EQ(jobs_.Find("iris")->trouble, "") << "it runs";

  server_.Remove(kube::kPods, kMaster);

  EXPECT_EQ(jobs_.Find("iris")->trouble, "its master was terminated: preempted");
  server_.Remove(kube::kServices, kMaster);
  ASSERT_EQ(jobs_.Resume(Iris()), Ok());
  EXPECT_FALSE(
      server_.Get(kube::kConfigMaps, kMaster)->annotations().contains("elasticdl.org/interrupted"));
}

TEST_F(KubernetesJobsTest, StopsAJobWhoseStatusCannotBeRead) {
  ASSERT_EQ(jobs_.Submit(Iris()), Ok());
  SetPhase("Pending");
  kube::Object map = server_.Get(kube::kConfigMaps, kMaster).value();
  map.fields()["data"]["status.json"] = "{";
  server_.Put(kube::kConfigMaps, map);

  ASSERT_EQ(jobs_.Stop("iris", "enough"), Ok());

  EXPECT_THAT(jobs_.Find("iris")->status_json, HasSubstr("stopped"));
  EXPECT_EQ(jobs_.Delete("iris"), Ok());
}

TEST_F(KubernetesJobsTest, NeverRestartsAMaster) {
  Submission submission = Iris();
  submission.options.restart_policy = PodRestartPolicy::kAlways;
  ASSERT_EQ(jobs_.Submit(submission), Ok());
  EXPECT_EQ(server_.Get(kube::kPods, kMaster)->fields()["spec"]["restartPolicy"], "Never");
}

TEST_F(KubernetesJobsTest, RunsMastersAsTheirOwnAccountWhereThereIsOne) {
  ASSERT_EQ(jobs_.Submit(Iris()), Ok());
  EXPECT_FALSE(server_.Get(kube::kPods, kMaster)->fields()["spec"].contains("serviceAccountName"))
      << "the namespace's default";
  ASSERT_EQ(jobs_.Delete("iris"), Ok());
  server_.Put(kube::kServiceAccounts,
              kube::Object(kube::kServiceAccounts, {"ml", "elasticdl-master"}));

  ASSERT_EQ(jobs_.Submit(Iris()), Ok());

  EXPECT_EQ(server_.Get(kube::kPods, kMaster)->fields()["spec"]["serviceAccountName"],
            "elasticdl-master");
}

TEST_F(KubernetesJobsTest, ReadsLogsOfItsPods) {
  ASSERT_EQ(jobs_.Submit(Iris()), Ok());
  server_.SetLog(kMaster, "one\ntwo\n");
  std::string text;
  ASSERT_EQ(jobs_.ReadLog(kMaster.name, LogMode::kUntilNow,
                          [&](std::string_view piece) {
                            text += piece;
                            return true;
                          }),
            Ok());
  EXPECT_EQ(text, "one\ntwo\n");
  EXPECT_THAT(jobs_.Pods("iris").value(), ElementsAre("elasticdl-iris-master"));
}

TEST_F(KubernetesJobsTest, WritesManifests) {
  const std::string yaml = jobs_.Manifests(Iris());
  EXPECT_THAT(yaml, HasSubstr("kind: \"Pod\""));
  EXPECT_THAT(yaml, HasSubstr("---\n"));
  EXPECT_THAT(yaml, HasSubstr("name: \"elasticdl-iris-master\""));
}

TEST_F(KubernetesJobsTest, HasATemplateOfEveryRoleAsItWouldBeMade) {
  const Templates templates = jobs_.MakeTemplates(Iris());
  ASSERT_EQ(templates.pods.size(), 5u) << "also of roles that it may get by scaling";
  for (const auto& [role, pod] : templates.pods) {
    EXPECT_EQ(pod["metadata"]["labels"]["elasticdl-replica-type"], job::NameOf(role));
    EXPECT_EQ(pod["spec"]["containers"][0]["name"], pod["metadata"]["name"]);
  }
  EXPECT_EQ(templates.service["kind"], "Service");
}

}  // namespace
}  // namespace edl::backend::kubernetes
