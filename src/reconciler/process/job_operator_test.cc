#include "reconciler/process/job_operator.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "reconciler/pod_group.h"
#include "reconciler/tfjob.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/testing/await.h"
#include "base/testing/status_matchers.h"
#include "job/progress.h"
#include "kube/testing/api_server.h"
#include "kube/text.h"

namespace edl::reconciler {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const kube::ObjectKey kJob{"ml", "mnist"};

json Role(int replicas, const std::string& restart = "Never") {
  return {{"replicas", replicas},
          {"restartPolicy", restart},
          {"template",
           {{"spec", {{"containers", json::array({{{"name", "tensorflow"}, {"image", "tf"}}})}}}}}};
}

kube::Object JobWith(json roles, json policy = json::object()) {
  kube::Object job(kTFJobs, kJob);
  job.fields()["spec"] = {{"tfReplicaSpecs", std::move(roles)}, {"runPolicy", std::move(policy)}};
  return job;
}

// A system clock that may be set to another time.
class OffsetClock final : public Clock {
 public:
  Time Now() const override { return std::chrono::steady_clock::now(); }
  WallTime WallNow() const override { return std::chrono::system_clock::now() + offset_.load(); }
  void SetWallTime(WallTime time) { offset_ = time - std::chrono::system_clock::now(); }

 private:
  std::atomic<Duration> offset_ = Duration::zero();
};

// An operator that talks to a fake API server. There is no kubelet: the tests write the states of
// pods.
class JobOperatorTest : public testing::Test {
 protected:
  void Start() {
    JobOperator::Options options{.instance = "test", .threads = 2};
    options.pods.gang_scheduler = gang_scheduler_;
    options.calls_per_second = 10'000;
    options.shards = {.image = "elasticdl", .new_token = [] { return "token"; }};
    options.may_write = [this] {
      on_may_write_();
      return may_write_.load();
    };
    options.watch.backoff = {std::chrono::milliseconds(1), std::chrono::milliseconds(50)};
    options.watch.short_watch = std::chrono::milliseconds(1);
    operator_ = std::make_unique<JobOperator>(connection_, kube::RealTiming(clock_), options);
    operator_->Start([] {});
  }

  // Starts an operator for gangs. When it returns, all lists have arrived but this one.
  void StartWithoutAnswerTo(const std::string& list) {
    gang_scheduler_ = "volcano";
    server_.Inject({.kind = kube::ApiServer::Fault::Kind::kSilent, .part = list});
    Start();
    server_.AwaitRequests(list, 1);
    server_.AwaitRequests("/tfjobs?watch=", 1);
    server_.AwaitRequests("/pods?labelSelector=", 2);  // a list, and then a watch
    server_.AwaitRequests("/services?labelSelector=", 2);
  }

  std::string MetricsText() const {
    metrics::Exposition out(metrics::Format::kPrometheus, {});
    operator_->AddMetrics(out, /*leading=*/true);
    return out.Finish();
  }

  // Waits until the operator has handled what it was told, so that only a new event moves it.
  void AwaitRest() {
    std::string metrics;
    int same = 0;
    EXPECT_OK(AwaitPolling("an operator at rest", [&] {
      std::string next = MetricsText();
      same = next == metrics ? same + 1 : 0;
      metrics = std::move(next);
      return same == 50;
    }));
  }

  // The names of all pods or services.
  std::set<std::string> Names(const kube::Resource& resource) {
    std::set<std::string> names;
    const auto list = client_.List(resource, "");
    EXPECT_OK(list);
    if (!list.ok()) return names;
    for (const kube::Object& object : list->items) names.insert(object.name());
    return names;
  }

  void AwaitPods(const std::set<std::string>& wanted) {
    EXPECT_OK(AwaitPolling(fmt::format("pods {}", fmt::join(wanted, ", ")),
                           [&] { return Names(kube::kPods) == wanted; }))
        << "there are pods " << fmt::format("{}", fmt::join(Names(kube::kPods), ", "));
  }

  json StatusOfJob() {
    const auto job = server_.Get(kTFJobs, kJob);
    return job.ok() ? FieldAt(job->fields(), {"status"}) : json();
  }

  bool Has(const std::string& type) {
    const json status = StatusOfJob();
    for (const json& condition : ListAt(status, {"conditions"})) {
      if (TextIn(condition, "type") == type && TextIn(condition, "status") == "True") return true;
    }
    return false;
  }
  void AwaitCondition(const std::string& type) {
    EXPECT_OK(AwaitPolling("condition " + type, [&] { return Has(type); })) << Dump(StatusOfJob());
  }

  void SetPhase(const std::string& pod, const std::string& phase, int exit_code = -1) {
    auto found = server_.Get(kube::kPods, {kJob.ns, pod});
    ASSERT_OK(found);
    json status = {{"phase", phase}};
    if (exit_code >= 0) {
      status["containerStatuses"] =
          json::array({{{"name", "tensorflow"},
                        {"state",
                         {{"terminated",
                           {{"exitCode", exit_code}, {"finishedAt", "2026-01-01T00:00:00Z"}}}}}}});
    }
    found->fields()["status"] = std::move(status);
    server_.Put(kube::kPods, *found);
  }

  kube::ApiServer server_;
  OffsetClock clock_;
  kube::Connection connection_{server_.config(), clock_, {}};
  kube::Client client_{connection_, kube::RealTiming(clock_)};
  std::atomic<bool> may_write_ = true;
  std::function<void()> on_may_write_ = [] {};
  std::string gang_scheduler_;
  std::unique_ptr<JobOperator> operator_;
};

TEST_F(JobOperatorTest, T_R2_CreatesPodsAndServicesWithLabelsAndOwner) {
  Start();
  server_.Put(kTFJobs, JobWith({{"Worker", Role(2)}, {"PS", Role(1)}}));

  AwaitPods({"mnist-ps-0", "mnist-worker-0", "mnist-worker-1"});

  EXPECT_OK(AwaitPolling("services", [&] { return Names(kube::kServices).size() == 3; }));
  const auto pod = server_.Get(kube::kPods, {"ml", "mnist-worker-1"});
  ASSERT_OK(pod);
  const auto service = server_.Get(kube::kServices, {"ml", "mnist-worker-1"});
  ASSERT_OK(service);
  const auto job = server_.Get(kTFJobs, kJob);
  ASSERT_OK(job);
  for (const kube::Object& object : {*pod, *service}) {
    EXPECT_EQ(object.label(kOperatorNameLabel), kControllerName);
    EXPECT_EQ(object.label(kJobNameLabel), "mnist");
    EXPECT_EQ(object.label(kReplicaTypeLabel), "worker");
    EXPECT_EQ(object.label(kReplicaIndexLabel), "1");
    ASSERT_EQ(object.owners().size(), 1U);
    EXPECT_EQ(object.owners().front().name, "mnist");
    EXPECT_EQ(object.owners().front().uid, job->uid());
    EXPECT_TRUE(object.owners().front().controller);
  }
  EXPECT_EQ(server_.CountRequests("POST /api/v1/namespaces/ml/pods"), 3);
  EXPECT_EQ(server_.CountRequests("POST /api/v1/namespaces/ml/services"), 3);
}

TEST_F(JobOperatorTest, RunsAJobToItsEndAndDeletesWhatStillRuns) {
  Start();
  server_.Put(kTFJobs,
              JobWith({{"Chief", Role(1)}, {"PS", Role(1)}}, {{"cleanPodPolicy", "Running"}}));
  AwaitPods({"mnist-chief-0", "mnist-ps-0"});
  SetPhase("mnist-chief-0", "Running");
  SetPhase("mnist-ps-0", "Running");
  AwaitCondition("Running");

  SetPhase("mnist-chief-0", "Succeeded", 0);

  AwaitCondition("Succeeded");
  AwaitPods({"mnist-chief-0"});
  EXPECT_THAT(MetricsText(),
              HasSubstr("training_operator_jobs_successful_total{framework=\"tensorflow\","
                        "job_namespace=\"ml\"} 1"));
}

TEST_F(JobOperatorTest, Q16_CreatesPodsInParallel) {
  // While one call has no answer, the next ones are sent.
  server_.Inject({.kind = kube::ApiServer::Fault::Kind::kSilent,
                  .part = "POST /api/v1/namespaces/ml/pods",
                  .times = 8});
  Start();
  server_.Put(kTFJobs, JobWith({{"Worker", Role(8)}}));

  server_.AwaitRequests("POST /api/v1/namespaces/ml/pods", 8);

  EXPECT_TRUE(Names(kube::kPods).empty());
}

TEST_F(JobOperatorTest, Q16_OneJobDoesNotWaitForAnother) {
  server_.Inject({.kind = kube::ApiServer::Fault::Kind::kSilent,
                  .part = "POST /api/v1/namespaces/ml/pods",
                  .times = 1'000'000});
  Start();
  server_.Put(kTFJobs, JobWith({{"Worker", Role(1)}}));
  server_.AwaitRequests("POST /api/v1/namespaces/ml/pods", 1);

  const Time begin = clock_.Now();
  kube::Object other = JobWith({{"Worker", Role(1)}});
  other.metadata()["namespace"] = "other";
  server_.Put(kTFJobs, other);

  AwaitPods({"mnist-worker-0"});
  // The call without an answer ends after 30 s.
  EXPECT_LT(clock_.Now() - begin, std::chrono::seconds(20));
}

TEST_F(JobOperatorTest, Q8_PlansKnowOwnWritesThatNoWatchHasReported) {
  // The watch of pods gets no event.
  const std::string labels = fmt::format("{}={}", kOperatorNameLabel, kControllerName);
  server_.Inject({.kind = kube::ApiServer::Fault::Kind::kSilent,
                  .part = fmt::format("/pods?labelSelector={}&watch=", kube::UrlEncoded(labels)),
                  .times = 1'000'000});
  Start();
  server_.Put(kTFJobs, JobWith({{"Worker", Role(1)}}));
  AwaitPods({"mnist-worker-0"});

  server_.Put(kTFJobs, JobWith({{"Worker", Role(2)}}));

  AwaitPods({"mnist-worker-0", "mnist-worker-1"});
  EXPECT_EQ(server_.CountRequests("POST /api/v1/namespaces/ml/pods"), 2);
}

TEST_F(JobOperatorTest, K45_AFinishedJobIsNotWrittenAgain) {
  // As the upstream operator wrote it.
  kube::Object job = JobWith({{"Worker", Role(1)}});
  job.fields()["status"] = {
      {"conditions",
       json::array({{{"type", "Created"}, {"status", "True"}, {"reason", "TFJobCreated"}},
                    {{"type", "Succeeded"}, {"status", "True"}, {"reason", "TFJobSucceeded"}}})},
      {"replicaStatuses", {{"Worker", {{"succeeded", 1}}}}},
      {"startTime", "2026-01-01T00:00:00Z"},
      {"completionTime", "2026-01-01T00:01:00Z"}};
  server_.Put(kTFJobs, job);
  kube::Object next = JobWith({{"Worker", Role(1)}});
  next.metadata()["name"] = "next";

  Start();
  server_.Put(kTFJobs, next);
  AwaitPods({"next-worker-0"});
  AwaitRest();

  EXPECT_EQ(server_.CountRequests("PUT /apis/kubeflow.org/v1/namespaces/ml/tfjobs/mnist"), 0);
}

TEST_F(JobOperatorTest, SurvivesAnExceptionWhileItReconciles) {
  std::atomic<int> throws = 1;
  on_may_write_ = [&] {
    if (throws-- > 0) throw std::runtime_error("no memory");
  };
  server_.Put(kTFJobs, JobWith({{"Worker", 7}}));  // it fails, and only its status is written
  Start();

  AwaitCondition("Failed");

  EXPECT_LT(throws, 1);
}

TEST_F(JobOperatorTest, Q16_CreatesEachObjectWithOneCall) {
  Start();
  server_.Put(kTFJobs, JobWith({{"Worker", Role(100)}}));

  EXPECT_OK(AwaitPolling("100 pods", [&] { return Names(kube::kPods).size() == 100; }));
  EXPECT_OK(AwaitPolling("100 services", [&] { return Names(kube::kServices).size() == 100; }));

  for (int i = 0; i < 100; ++i) SetPhase(fmt::format("mnist-worker-{}", i), "Running");
  AwaitCondition("Running");
  // The operator knows its own writes, so it never tries to create a pod twice.
  EXPECT_EQ(server_.CountRequests("POST /api/v1/namespaces/ml/pods"), 100);
  EXPECT_EQ(server_.CountRequests("POST /api/v1/namespaces/ml/services"), 100);
}

TEST_F(JobOperatorTest, K45_AMissedDeletionIsFoundByTheNextList) {
  Start();
  server_.Put(kTFJobs, JobWith({{"Worker", Role(1, "OnFailure")}}));
  AwaitPods({"mnist-worker-0"});
  const auto pod = server_.Get(kube::kPods, {"ml", "mnist-worker-0"});
  ASSERT_OK(pod);

  server_.RemoveUnseen(kube::kPods, pod->key());
  server_.ExpireWatches();

  EXPECT_OK(AwaitPolling("another pod of the same name", [&] {
    const auto next = server_.Get(kube::kPods, pod->key());
    return next.ok() && next->uid() != pod->uid();
  }));
}

TEST_F(JobOperatorTest, K45_BrokenWatchesAndCompactionLoseNothing) {
  Start();
  server_.Put(kTFJobs, JobWith({{"Chief", Role(1)}, {"Worker", Role(1)}}));
  AwaitPods({"mnist-chief-0", "mnist-worker-0"});

  server_.BreakWatches();
  SetPhase("mnist-chief-0", "Succeeded", 0);
  server_.Compact();
  server_.ExpireWatches();

  AwaitCondition("Succeeded");
}

TEST_F(JobOperatorTest, K45_RetriesACreateThatTheServerRejects) {
  server_.Inject({.kind = kube::ApiServer::Fault::Kind::kAnswer,
                  .part = "POST /api/v1/namespaces/ml/pods",
                  .times = 3,
                  .status = 403,
                  .body = R"({"kind":"Status","code":403,"reason":"Forbidden",)"
                          R"("message":"exceeded quota: pods"})"});
  Start();
  server_.Put(kTFJobs, JobWith({{"Worker", Role(1)}}));

  AwaitPods({"mnist-worker-0"});

  EXPECT_OK(AwaitPolling("an event", [&] {
    const auto events = client_.List(kube::kEvents, "ml");
    if (!events.ok()) return false;
    return std::any_of(events->items.begin(), events->items.end(), [](const kube::Object& event) {
      return TextIn(event.fields(), "reason") == "FailedCreatePod" &&
             TextIn(event.fields(), "message").find("exceeded quota") != std::string::npos;
    });
  }));
}

TEST_F(JobOperatorTest, K45_WaitsForAForeignPodWithItsName) {
  server_.Put(kube::kPods, kube::Object(kube::kPods, {"ml", "mnist-worker-0"}));
  Start();
  server_.Put(kTFJobs, JobWith({{"Worker", Role(1)}}));
  server_.AwaitRequests("POST /api/v1/namespaces/ml/pods", 2);
  EXPECT_OK(AwaitPolling("an event", [&] {
    const auto events = client_.List(kube::kEvents, "ml");
    if (!events.ok()) return false;
    return std::any_of(events->items.begin(), events->items.end(), [](const kube::Object& event) {
      return TextIn(event.fields(), "message").find("does not belong to this job") !=
             std::string::npos;
    });
  }));

  server_.Remove(kube::kPods, {"ml", "mnist-worker-0"});

  EXPECT_OK(AwaitPolling("a pod of the job", [&] {
    const auto pod = server_.Get(kube::kPods, {"ml", "mnist-worker-0"});
    return pod.ok() && !pod->owners().empty();
  }));
}

TEST_F(JobOperatorTest, K45_ANewOperatorContinuesWithoutRecreatingPods) {
  Start();
  server_.Put(kTFJobs, JobWith({{"Chief", Role(1)}, {"Worker", Role(2)}}));
  AwaitPods({"mnist-chief-0", "mnist-worker-0", "mnist-worker-1"});
  operator_.reset();
  const int created = server_.CountRequests("POST /api/v1/namespaces/ml/pods");
  SetPhase("mnist-chief-0", "Succeeded", 0);

  Start();

  AwaitCondition("Succeeded");
  EXPECT_EQ(server_.CountRequests("POST /api/v1/namespaces/ml/pods"), created);
}

// The fake API server gives each object this creation time.
constexpr char kServerTime[] = "2026-11-15T10:00:00Z";

TEST_F(JobOperatorTest, K45_ClockSkewOfAnHourChangesNothing) {
  for (const std::chrono::hours ahead : {std::chrono::hours(-1), std::chrono::hours(1)}) {
    clock_.SetWallTime(*kube::ParseTime(kServerTime) + ahead);
    Start();
    server_.Put(kTFJobs, JobWith({{"Worker", Role(1, "ExitCode")}},
                                 {{"activeDeadlineSeconds", 600}, {"backoffLimit", 100}}));
    std::set<std::string> uids;
    const auto await_next = [&] {
      return AwaitPolling(fmt::format("pod {}", uids.size() + 1), [&] {
        const auto pod = server_.Get(kube::kPods, {"ml", "mnist-worker-0"});
        return pod.ok() && !pod->deleting() && uids.insert(pod->uid()).second;
      });
    };
    ASSERT_OK(await_next());
    // The first one is replaced at once, the second one a second after its creation.
    const Time begin = clock_.Now();
    for (int i = 0; i < 2; ++i) {
      SetPhase("mnist-worker-0", "Failed", 137);
      ASSERT_OK(await_next()) << "with a clock that is ahead by " << ahead.count() << " hours";
    }
    EXPECT_GE(clock_.Now() - begin, std::chrono::seconds(1));
    SetPhase("mnist-worker-0", "Succeeded", 0);
    AwaitCondition("Succeeded");
    operator_.reset();
    server_.Remove(kTFJobs, kJob);
    server_.Remove(kube::kPods, {"ml", "mnist-worker-0"});
    server_.Remove(kube::kServices, {"ml", "mnist-worker-0"});
  }
}

TEST_F(JobOperatorTest, WritesNothingWithoutTheLease) {
  may_write_ = false;
  Start();
  server_.Put(kTFJobs, JobWith({{"Worker", Role(1)}}));
  EXPECT_OK(AwaitPolling("a failed attempt", [&] {
    return MetricsText().find(
               "reconcile_total{controller=\"tfjob-controller\",result=\"error\"} 0") ==
           std::string::npos;
  }));
  EXPECT_TRUE(Names(kube::kPods).empty());

  may_write_ = true;

  AwaitPods({"mnist-worker-0"});
}

TEST_F(JobOperatorTest, SaysWhyAJobFailed) {
  Start();
  server_.Put(kTFJobs, JobWith({{"Worker", Role(1)}}));
  AwaitPods({"mnist-worker-0"});
  server_.SetLog({"ml", "mnist-worker-0"}, "loading\nImportError: no module named x\n");

  SetPhase("mnist-worker-0", "Failed", 3);

  AwaitCondition("Failed");
  const json status = StatusOfJob();
  const json& conditions = ListAt(status, {"conditions"});
  const std::string message = TextIn(conditions.back(), "message");
  EXPECT_THAT(message, HasSubstr("mnist-worker-0"));
  EXPECT_THAT(message, HasSubstr("exit code 3"));
  EXPECT_THAT(message, HasSubstr("ImportError: no module named x"));
}

TEST_F(JobOperatorTest, ReadsTheProgressOfTheDataShardService) {
  Start();
  kube::Object job = JobWith({{"Worker", Role(1)}});
  job.metadata()["annotations"] = {{kDataShards, "true"}};
  server_.Put(kTFJobs, job);
  AwaitPods({"mnist-shards", "mnist-worker-0"});
  server_.SetLog({"ml", "mnist-shards"}, job::ProgressMessage("40 %") + "\n");

  SetPhase("mnist-shards", "Running");
  SetPhase("mnist-worker-0", "Running");

  EXPECT_OK(AwaitPolling("the progress", [&] {
    return TextIn(FieldAt(StatusOfJob(), {"elasticdl"}), "progress") == "40 %";
  })) << Dump(StatusOfJob());
}

TEST_F(JobOperatorTest, WaitsForThePodGroups) {
  server_.Put(kTFJobs, JobWith({{"Worker", Role(1)}}));
  StartWithoutAnswerTo("/podgroups?limit=");

  EXPECT_FALSE(operator_->ready());
  EXPECT_EQ(server_.CountRequests("POST "), 0);
}

TEST_F(JobOperatorTest, WaitsForThePriorityClasses) {
  server_.Put(kTFJobs, JobWith({{"Worker", Role(1)}}));
  StartWithoutAnswerTo("/priorityclasses?limit=");

  EXPECT_FALSE(operator_->ready());
  EXPECT_EQ(server_.CountRequests("POST "), 0);
}

TEST_F(JobOperatorTest, RunsJobsWithoutThePermissionToReadPriorityClasses) {
  gang_scheduler_ = "volcano";
  server_.Inject({.part = "/priorityclasses", .times = 1'000'000, .status = 403});
  server_.Put(kTFJobs, JobWith({{"Worker", Role(1)}}));
  Start();

  server_.AwaitRequests("POST /apis/scheduling.volcano.sh", 1);
}

TEST_F(JobOperatorTest, ANewPriorityChangesThePodGroupsOfJobs) {
  gang_scheduler_ = "volcano";
  json roles = {{"Worker", Role(1)}, {"PS", Role(1)}};
  for (const auto& [role, cpu] : {std::pair("Worker", "1"), std::pair("PS", "2")}) {
    json& pod = roles[role]["template"]["spec"];
    pod["containers"][0]["resources"]["requests"]["cpu"] = cpu;
    pod["priorityClassName"] = role;
  }
  server_.Put(kTFJobs, JobWith(roles, {{"schedulingPolicy", {{"minAvailable", 1}}}}));
  Start();
  const auto await_cpu = [&](const std::string& cpu) {
    return AwaitPolling("a pod group for " + cpu, [&] {
      const auto group = server_.Get(kVolcanoPodGroups, kJob);
      return group.ok() && TextIn(FieldAt(group->fields(), {"spec", "minResources"}), "cpu") == cpu;
    });
  };
  const auto set_priority = [&](const std::string& role, int value) {
    kube::Object priority(kube::kPriorityClasses, {"", role});
    priority.fields()["value"] = value;
    server_.Put(kube::kPriorityClasses, priority);
  };

  set_priority("PS", 5);
  EXPECT_OK(await_cpu("2"));
  AwaitRest();
  set_priority("Worker", 7);
  EXPECT_OK(await_cpu("1"));
}

TEST_F(JobOperatorTest, Q10_APodGroupIsNotWrittenAgain) {
  gang_scheduler_ = "volcano";
  Start();
  server_.Put(kTFJobs, JobWith({{"Worker", Role(2)}}));
  EXPECT_OK(AwaitPolling("a pod group", [&] { return server_.Get(kVolcanoPodGroups, kJob).ok(); }));
  auto group = server_.Get(kVolcanoPodGroups, kJob);
  ASSERT_OK(group);
  group->fields()["status"]["phase"] = "Inqueue";
  server_.Put(kVolcanoPodGroups, *group);
  AwaitPods({"mnist-worker-0", "mnist-worker-1"});

  SetPhase("mnist-worker-0", "Running");
  AwaitCondition("Running");
  AwaitRest();

  EXPECT_EQ(server_.CountRequests("PUT /apis/scheduling.volcano.sh"), 0);
}

TEST_F(JobOperatorTest, AJobThatCannotBeParsedFailsAndDisturbsNoOther) {
  kube::Object wrong(kTFJobs, {"ml", "wrong"});
  wrong.fields()["spec"] = {{"tfReplicaSpecs", {{"Worker", 7}, {"Boss", json::array()}}}};
  Start();
  server_.Put(kTFJobs, wrong);
  server_.Put(kTFJobs, JobWith({{"Worker", Role(1)}}));

  AwaitPods({"mnist-worker-0"});

  EXPECT_OK(AwaitPolling("the wrong job to fail", [&] {
    const auto job = server_.Get(kTFJobs, wrong.key());
    return job.ok() && Dump(FieldAt(job->fields(), {"status"})).find("TFJobFailedValidation") !=
                           std::string::npos;
  }));
}

TEST_F(JobOperatorTest, AJobThatIsNestedDeeplyDisturbsNoOther) {
  json deep;
  for (int i = 0; i < 100; ++i) deep = json::array({std::move(deep)});
  kube::Object wrong = JobWith({{"Worker", Role(1)}});
  wrong.metadata()["name"] = "deep";
  wrong.fields()["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["x"] = deep;
  server_.Put(kTFJobs, wrong);
  server_.Put(kTFJobs, JobWith({{"Chief", Role(1)}}));
  Start();
  AwaitPods({"deep-worker-0", "mnist-chief-0"});

  wrong.metadata()["name"] = "deep2";
  server_.Put(kTFJobs, wrong);
  server_.ExpireWatches();
  kube::Object next = JobWith({{"Chief", Role(1)}});
  next.metadata()["name"] = "next";
  server_.Put(kTFJobs, next);

  AwaitPods({"deep-worker-0", "deep2-worker-0", "mnist-chief-0", "next-chief-0"});
}

TEST_F(JobOperatorTest, AnExpiredJobIsDeleted) {
  Start();
  server_.Put(kTFJobs, JobWith({{"Worker", Role(1)}}, {{"ttlSecondsAfterFinished", 0}}));
  AwaitPods({"mnist-worker-0"});

  SetPhase("mnist-worker-0", "Succeeded", 0);

  EXPECT_OK(
      AwaitPolling("the deletion of the job", [&] { return !server_.Get(kTFJobs, kJob).ok(); }));
}

TEST_F(JobOperatorTest, TheEventsOfManyReplicasDoNotDisplaceThoseThatExplainAFailure) {
  Start();
  server_.Put(kTFJobs, JobWith({{"Worker", Role(30)}}));
  EXPECT_OK(AwaitPolling("30 pods", [&] { return Names(kube::kPods).size() == 30; }));
  server_.SetLog({"ml", "mnist-worker-7"}, "ImportError: no module named x\n");

  SetPhase("mnist-worker-7", "Failed", 3);

  AwaitCondition("Failed");
  for (const std::string reason : {"TFJobFailed", "PodLog"}) {
    EXPECT_OK(AwaitPolling("the event " + reason, [&] {
      const auto events = client_.List(kube::kEvents, "ml");
      return events.ok() && std::ranges::any_of(events->items, [&](const kube::Object& event) {
               return TextIn(event.fields(), "reason") == reason;
             });
    }));
  }
}

}  // namespace
}  // namespace edl::reconciler
