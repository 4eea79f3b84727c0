#include "reconciler/tfjob.h"

#include "reconciler/testing/cluster_model.h"
#include "reconciler/testing/wrong_types.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/testing/status_matchers.h"

namespace edl::reconciler {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

json OneWorker() { return JobObject({{"Worker", Role(1)}}); }

json& WorkerOf(json& job) { return job["spec"]["tfReplicaSpecs"]["Worker"]; }
json& ContainersOf(json& job) { return WorkerOf(job)["template"]["spec"]["containers"]; }

const ReplicaSpec& Worker(const TFJob& job) { return job.replicas.at(ReplicaType::kWorker); }

std::vector<std::string> Mistakes(const json& job) { return Validate(kube::Object(job)); }

TEST(TFJobDefaults, T_D1_RolesAreReadInAnyCase) {
  const TFJob job = ParsedJob(JobObject({{"WORKER", Role(2)}, {"pS", Role(1)}}));
  EXPECT_TRUE(job.has(ReplicaType::kWorker));
  EXPECT_TRUE(job.has(ReplicaType::kPs));
}

TEST(TFJobDefaults, T_D2_ARoleHasOneReplicaByDefault) {
  json job = OneWorker();
  WorkerOf(job).erase("replicas");
  EXPECT_EQ(Worker(ParsedJob(job)).replicas, 1);
}

TEST(TFJobDefaults, T_D3_ARoleIsNeverRestartedByDefault) {
  json job = OneWorker();
  WorkerOf(job).erase("restartPolicy");
  EXPECT_EQ(Worker(ParsedJob(job)).restart, RestartPolicy::kNever);
}

TEST(TFJobDefaults, T_D4_APortIsAdded) {
  const TFJob job = ParsedJob(OneWorker());
  EXPECT_EQ(Worker(job).port, 2222);
  EXPECT_EQ(Dump(*TrainingContainer(Worker(job).pod_template["spec"])),
            R"({"image":"trainer","name":"tensorflow","ports":[)"
            R"({"containerPort":2222,"name":"tfjob-port"}]})");
}

TEST(TFJobDefaults, T_D5_OtherPortsAreKept) {
  json job = OneWorker();
  ContainersOf(job)[0]["ports"] = json::array({{{"name", "other"}, {"containerPort", 80}}});
  const TFJob parsed = ParsedJob(job);
  EXPECT_EQ(Dump((*TrainingContainer(Worker(parsed).pod_template["spec"]))["ports"]),
            R"([{"containerPort":80,"name":"other"},{"containerPort":2222,"name":"tfjob-port"}])");
}

TEST(TFJobDefaults, T_D5_APortOfTheUserIsUsed) {
  json job = OneWorker();
  ContainersOf(job)[0]["ports"] = json::array({{{"name", "tfjob-port"}, {"containerPort", 80}}});
  EXPECT_EQ(Worker(ParsedJob(job)).port, 80);
}

TEST(TFJobDefaults, T_D6_PodsAreKeptAndWorkerZeroDecidesByDefault) {
  EXPECT_EQ(ParsedJob(OneWorker()).clean, CleanPodPolicy::kNone);
  EXPECT_FALSE(ParsedJob(OneWorker()).all_workers_must_succeed);
  const json all = JobObject({{"Worker", Role(1)}}, {{"cleanPodPolicy", "All"}});
  EXPECT_EQ(ParsedJob(all).clean, CleanPodPolicy::kAll);
}

TEST(TFJobDefaults, T_D7_ChiefAndMasterDecideAboutAJob) {
  EXPECT_TRUE(IsChiefOrMaster(ReplicaType::kChief));
  EXPECT_TRUE(IsChiefOrMaster(ReplicaType::kMaster));
  EXPECT_FALSE(IsChiefOrMaster(ReplicaType::kWorker));
}

TEST(TFJobDefaults, LimitsAreMissingByDefault) {
  const TFJob job = ParsedJob(OneWorker());
  EXPECT_EQ(job.ttl, std::nullopt);
  EXPECT_EQ(job.deadline, std::nullopt);
  EXPECT_EQ(job.backoff_limit, std::nullopt);
}

TEST(TFJobValidation, T_V1_AValidJobManagedByUsIsAccepted) {
  json job = OneWorker();
  job["spec"]["runPolicy"]["managedBy"] = "kubeflow.org/training-operator";
  EXPECT_THAT(Mistakes(job), IsEmpty());
}

TEST(TFJobValidation, T_V2_ANameThatIsNoLabelIsRejected) {
  for (const char* name : {"00test", "", "a.b", "Test", "a-", "j_1"}) {
    json job = OneWorker();
    job["metadata"]["name"] = name;
    EXPECT_THAT(Mistakes(job), ElementsAre(HasSubstr("metadata.name: Invalid value"))) << name;
  }
}

TEST(TFJobValidation, T_V3_ARoleWithoutContainersHasTwoMistakes) {
  json job = OneWorker();
  ContainersOf(job) = json::array();
  EXPECT_THAT(
      Mistakes(job),
      ElementsAre("spec.tfReplicaSpecs[Worker].template.spec.containers: Required value: must be "
                  "specified",
                  "spec.tfReplicaSpecs[Worker].template.spec.containers: Required value: must have "
                  "at least one container with name tensorflow"));
  EXPECT_THAT(ParseTFJob(kube::Object(job)),
              StatusIs(Code::kInvalidArgument, testing::StartsWith("[spec.tfReplicaSpecs")));
}

TEST(TFJobValidation, T_V4_AContainerNeedsAnImage) {
  json job = OneWorker();
  ContainersOf(job)[0]["image"] = "";
  EXPECT_THAT(Mistakes(job),
              ElementsAre("spec.tfReplicaSpecs[Worker].template.spec.containers[0].image: Required "
                          "value: must be required"));
}

TEST(TFJobValidation, T_V5_AContainerMustBeNamedTensorflow) {
  json job = OneWorker();
  ContainersOf(job)[0]["name"] = "trainer";
  EXPECT_THAT(Mistakes(job), ElementsAre(HasSubstr("container with name tensorflow")));
}

TEST(TFJobValidation, T_V6_ChiefAndMasterExcludeEachOther) {
  EXPECT_THAT(
      Mistakes(JobObject({{"Chief", Role(1)}, {"Master", Role(1)}})),
      ElementsAre(
          "spec.tfReplicaSpecs: Forbidden: must not have more than 1 Chief or Master role"));
}

TEST(TFJobValidation, T_V7_AnUnknownManagerIsRejected) {
  json job = OneWorker();
  job["spec"]["runPolicy"]["managedBy"] = "other-job-controller";
  EXPECT_THAT(Mistakes(job),
              ElementsAre("spec.runPolicy.managedBy: Unsupported value: \"other-job-controller\": "
                          "supported values: \"kueue.x-k8s.io/multikueue\", "
                          "\"kubeflow.org/training-operator\""));
}

TEST(TFJobValidation, Q12_ANameWhoseServicesWouldBeTooLongIsRejected) {
  json job = JobObject({{"Worker", Role(11)}});
  job["metadata"]["name"] = std::string(53, 'a');
  EXPECT_THAT(Mistakes(job), IsEmpty());
  WorkerOf(job)["replicas"] = 101;
  EXPECT_THAT(Mistakes(job), ElementsAre(HasSubstr("the most are 63")));
}

TEST(TFJobValidation, Q12_ARoleWithoutReplicasHasNoNamesThatAreTooLong) {
  json job = JobObject({{"Worker", Role(1)}, {"Evaluator", Role(0)}});
  job["metadata"]["name"] = std::string(53, 'a');
  EXPECT_THAT(Mistakes(job), IsEmpty());
}

TEST(TFJobValidation, T_I10_Q13_AJobThatCouldNeverEndIsRejected) {
  const auto rejected = [](const json& roles) { return !Mistakes(JobObject(roles)).empty(); };
  EXPECT_TRUE(rejected({{"Worker", Role(0)}}));
  EXPECT_TRUE(rejected({{"PS", Role(2)}}));
  EXPECT_TRUE(rejected({{"Evaluator", Role(1)}}));
  EXPECT_TRUE(rejected({{"Chief", Role(0)}}));
  EXPECT_TRUE(rejected(json::object()));
  EXPECT_FALSE(rejected({{"Chief", Role(1)}, {"Worker", Role(0)}}));
  EXPECT_FALSE(rejected({{"Chief", Role(0)}, {"Worker", Role(1)}}));
}

TEST(TFJobValidation, ARoleMustNotBeGivenTwice) {
  EXPECT_THAT(Mistakes(JobObject({{"Worker", Role(1)}, {"worker", Role(2)}})),
              ElementsAre(HasSubstr("must not have a role twice")));
}

TEST(TFJobValidation, AStoredJobWithAnUnknownCleanPodPolicyGoesOn) {
  const TFJob job = ParsedJob(JobObject({{"Worker", Role(1)}}, {{"cleanPodPolicy", "all"}}));
  EXPECT_EQ(job.clean, CleanPodPolicy::kAll);
  const TFJob empty = ParsedJob(JobObject({{"Worker", Role(1)}}, {{"cleanPodPolicy", ""}}));
  EXPECT_EQ(empty.clean, CleanPodPolicy::kAll);
}

TEST(TFJobValidation, UnknownRolesAndPoliciesAreRejected) {
  EXPECT_THAT(Mistakes(JobObject({{"Worker", Role(1)}, {"Launcher", Role(1)}})),
              ElementsAre(HasSubstr("\"Launcher\"")));
  EXPECT_THAT(ParseTFJob(kube::Object(JobObject({{"Worker", Role(1, "Sometimes")}}))),
              StatusIs(Code::kInvalidArgument, HasSubstr("spec.tfReplicaSpecs[Worker].restart")));
}

TEST(TFJobValidation, ANumberOfReplicasThatNoClusterHasIsRejected) {
  for (const int64_t replicas : {int64_t{-1}, int64_t{10'001}, INT64_MAX, INT64_MIN}) {
    json job = JobObject({{"Chief", Role(1)}, {"Worker", Role(1)}});
    WorkerOf(job)["replicas"] = replicas;
    EXPECT_THAT(Mistakes(job), testing::Contains(HasSubstr("must be between 0 and 10000")))
        << replicas;
  }
}

TEST(TFJobValidation, T_I8_AJobWithoutUidOwnsNothing) {
  json job = OneWorker();
  job["metadata"].erase("uid");
  EXPECT_THAT(ParseTFJob(kube::Object(job)), StatusIs(Code::kInvalidArgument, HasSubstr("uid")));
}

TEST(TFJob, T_M1_AJobIsOursUnlessItNamesAnotherManager) {
  const auto ours = [](const json& managed_by) {
    json job = OneWorker();
    job["spec"]["runPolicy"]["managedBy"] = managed_by;
    return ManagedByUs(kube::Object(job));
  };
  EXPECT_TRUE(ManagedByUs(kube::Object(OneWorker())));
  EXPECT_TRUE(ours(nullptr));
  EXPECT_TRUE(ours("kubeflow.org/training-operator"));
  EXPECT_FALSE(ours(""));
  EXPECT_FALSE(ours("kueue.x-k8s.io/multikueue"));
  EXPECT_FALSE(ours("other"));
  EXPECT_FALSE(ours(7));
}

TEST(TFJob, T_I20_AJobOfMultiKueueIsNotOurs) {
  json job = JobObject({{"Worker", Role(1)}}, {{"managedBy", "kueue.x-k8s.io/multikueue"}});
  for (const bool suspend : {true, false}) {
    job["spec"]["runPolicy"]["suspend"] = suspend;
    EXPECT_THAT(Mistakes(job), IsEmpty());
    EXPECT_FALSE(ManagedByUs(kube::Object(job)));
  }
}

TEST(TFJob, T_X1_CodesOfSignalsAreRetryable) {
  for (const int code : {1, 2, 3, 127}) EXPECT_FALSE(IsRetryable(code)) << code;
  for (const int code : {128, 130, 137, 138, 143, 255}) EXPECT_TRUE(IsRetryable(code)) << code;
}

TEST(TFJob, T_X2_AJobIsSuspendedOnlyByTrue) {
  json job = OneWorker();
  EXPECT_FALSE(ParsedJob(job).suspended);
  job["spec"].erase("runPolicy");
  EXPECT_FALSE(ParsedJob(job).suspended);
  job["spec"]["runPolicy"] = {{"suspend", false}};
  EXPECT_FALSE(ParsedJob(job).suspended);
  job["spec"]["runPolicy"] = {{"suspend", true}};
  EXPECT_TRUE(ParsedJob(job).suspended);
}

TEST(TFJob, T_P6_ANameHasJobRoleAndIndex) {
  EXPECT_EQ(ReplicaName("1/2/3/4/5", *ParseReplicaType("WORKER"), 1), "1-2-3-4-5-worker-1");
}

TEST(TFJob, AChiefWithoutReplicasDecidesNothing) {
  EXPECT_EQ(ParsedJob(JobObject({{"Chief", Role(0)}, {"Worker", Role(1)}})).chief(), std::nullopt);
  EXPECT_EQ(ParsedJob(JobObject({{"Master", Role(1)}})).chief(), ReplicaType::kMaster);
}

TEST(TFJob, DynamicWorkersStayBetweenTheLimitsOfTheAnnotations) {
  const auto workers = [](int replicas, const json& annotations, bool dynamic = true) {
    json job = JobObject({{"Worker", Role(replicas)}});
    job["metadata"]["annotations"] = annotations;
    job["spec"]["enableDynamicWorker"] = dynamic;
    return Worker(ParsedJob(job)).replicas;
  };
  const json limits = {{kMinWorkers, "2"}, {kMaxWorkers, "4"}};
  EXPECT_EQ(workers(1, limits), 2);
  EXPECT_EQ(workers(3, limits), 3);
  EXPECT_EQ(workers(9, limits), 4);
  EXPECT_EQ(workers(9, limits, false), 9);
  EXPECT_EQ(workers(9, {{kMaxWorkers, "many"}}), 9);
  EXPECT_EQ(workers(9, {{kMaxWorkers, "99999999999999"}}), 9);
  EXPECT_EQ(workers(9, {{kMinWorkers, "-3"}}), 9);
  EXPECT_EQ(workers(9, {{kMaxWorkers, "3x"}}), 9);
}

TEST(TFJob, WrongAnnotationsAreNamed) {
  const auto mistakes = [](const json& annotations) {
    json job = OneWorker();
    job["metadata"]["annotations"] = annotations;
    return ParsedJob(job).AnnotationMistakes();
  };
  EXPECT_THAT(
      mistakes(
          {{kDataShards, "true"}, {kMinWorkers, "2"}, {kMaxWorkers, "4"}, {"other.org/x", "y"}}),
      IsEmpty());
  EXPECT_THAT(mistakes({{kDataShards, "True"}}),
              ElementsAre("metadata.annotations[tfjob.elasticdl.org/data-shards]: Invalid value: "
                          "\"True\": must be \"true\" or \"false\"; it is ignored"));
  EXPECT_THAT(mistakes({{kMaxWorkers, "3x"}}),
              ElementsAre(HasSubstr("must be a number from 1 to 10000; it is ignored")));
  EXPECT_THAT(mistakes({{kMinWorkers, "5"}, {kMaxWorkers, "4"}}),
              ElementsAre(HasSubstr("must not be less than min-workers; min-workers is used")));
}

TEST(TFJob, DynamicWorkersWithoutAMinimumMayBeScaledToZero) {
  json job = JobObject({{"Chief", Role(1)}, {"Worker", Role(0)}});
  job["spec"]["enableDynamicWorker"] = true;
  EXPECT_EQ(Worker(ParsedJob(job)).replicas, 0);
}

TEST(TFJob, LongTimesDoNotOverflow) {
  json job = OneWorker();
  job["spec"]["runPolicy"] = {{"ttlSecondsAfterFinished", INT64_MAX},
                              {"activeDeadlineSeconds", INT64_MIN}};
  EXPECT_EQ(ParsedJob(job).ttl, std::chrono::hours(24 * 365 * 50));
  EXPECT_EQ(ParsedJob(job).deadline, std::chrono::seconds(0));
}

TEST(TFJob, WrongTypesAnywhereAreRejectedOrIgnored) {
  json job = JobObject({{"Chief", Role(1)}, {"Worker", Role(2, "ExitCode")}},
                       {{"cleanPodPolicy", "All"},
                        {"backoffLimit", 3},
                        {"ttlSecondsAfterFinished", 1},
                        {"schedulingPolicy", {{"minResources", {{"cpu", "1"}}}}}});
  job["metadata"]["annotations"] = {{kMaxWorkers, "3"}};
  WorkerOf(job)["template"]["metadata"] = {{"labels", {{"a", "b"}}}};
  ContainersOf(job)[0]["ports"] = json::array({{{"name", "x"}, {"containerPort", 80}}});
  ContainersOf(job)[0]["env"] = json::array({{{"name", "x"}, {"value", "y"}}});
  ContainersOf(job)[0]["resources"] = {{"limits", {{"cpu", 1}}}};
  Settings settings;
  const int tried = ForEachWrongType(job, [&] {
    const auto parsed = ParseTFJob(kube::Object(job));
    if (!parsed.ok()) return;
    Observed observed;
    observed.job = *parsed;
    for (const char* scheduler : {"", "volcano", "plugin"}) {
      settings.pods.gang_scheduler = scheduler;
      Reconcile(observed, settings, kNoon);
    }
  });
  EXPECT_GT(tried, 300);
}

TEST(TFJob, Q12_AMinimumOfWorkersWhoseNamesWouldBeTooLongIsIgnored) {
  json object = OneWorker();
  object["metadata"]["name"] = std::string(53, 'a');
  object["spec"]["enableDynamicWorker"] = true;
  object["metadata"]["annotations"] = {{kMinWorkers, "11"}};
  EXPECT_EQ(Worker(ParsedJob(object)).replicas, 11);
  EXPECT_THAT(ParsedJob(object).AnnotationMistakes(), IsEmpty());

  object["metadata"]["annotations"] = {{kMinWorkers, "101"}};

  const TFJob job = ParsedJob(object);
  EXPECT_EQ(Worker(job).replicas, 1);
  EXPECT_EQ(job.min_workers(), std::nullopt);
  EXPECT_THAT(job.AnnotationMistakes(),
              ElementsAre("metadata.annotations[tfjob.elasticdl.org/min-workers]: Invalid value: "
                          "\"101\": the names of so many workers would be longer than 63 "
                          "characters; it is ignored"));
}

}  // namespace
}  // namespace edl::reconciler
