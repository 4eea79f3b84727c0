#include "backend/kubernetes/kubernetes_backend.h"

#include <algorithm>
#include <csignal>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/testing/event_recorder.h"
#include "base/testing/await.h"
#include "base/testing/status_matchers.h"
#include "job/train_flags.h"
#include "kube/resource.h"
#include "kube/testing/api_server.h"

namespace edl::backend::kubernetes {
namespace {

using Kind = job::ReplicaEvent::Kind;
using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kWorker = "iris-edljob-worker-0";
const kube::ObjectKey kWorkerKey{"ml", kWorker};
constexpr const char* kForbidden = R"({"kind": "Status", "code": 403, "reason": "Forbidden",
                                       "message": "pods is forbidden: exceeded quota: small"})";

constexpr const char* kRunningStatus = R"({"phase": "Running", "podIP": "10.0.0.7",
    "conditions": [{"type": "Ready", "status": "True"}],
    "containerStatuses": [{"name": "iris-edljob-worker-0", "ready": true,
                           "state": {"running": {}}}]})";
// The status that the node lifecycle controller writes for a lost node.
constexpr const char* kLostStatus = R"({"phase": "Running", "podIP": "10.0.0.7",
    "conditions": [{"type": "Ready", "status": "False"}],
    "containerStatuses": [{"name": "iris-edljob-worker-0", "ready": true,
                           "state": {"running": {}}}]})";

// The conformance suite runs in a real cluster (testing/conformance_main.cc). These tests cover
// what a real cluster cannot be made to do.
class KubernetesBackendTest : public testing::Test {
 protected:
  KubernetesBackendTest() {
    kube::Object master(kube::kPods, {"ml", "elasticdl-iris-master"});
    master_ = server_.Put(kube::kPods, master).AsOwner();
  }

  void Make(std::map<std::string, std::string> given = {}) {
    FlagValues flags(job::TrainFlags());
    given.insert({{"job_name", "iris"}, {"job_command", "train"}, {"image_name", "elasticdl:1"}});
    for (const auto& [flag, value] : given) {
      EXPECT_EQ(flags.Set(flag, value, FlagSource::kCommandLine), Ok());
    }
    backend_.emplace(connection_, kube::RealTiming(clock_),
                     PodMaker(*job::MakeJobSpec(flags), *backend::MakeClusterOptions(flags), "ml"),
                     KubernetesBackend::Options{.master = master_,
                                                .retry_every = std::chrono::milliseconds(20),
                                                .lookup_after = std::chrono::milliseconds(20),
                                                .sidecar_grace = std::chrono::milliseconds(50),
                                                .services_every = std::chrono::milliseconds(20)});
  }

  void Start(std::map<std::string, std::string> given = {}) {
    Make(std::move(given));
    backend_->Watch(recorder_.Watcher());
    ASSERT_TRUE(recorder_.Await(Kind::kSynced).has_value());
  }

  // A pod of this master that the backend did not create.
  kube::Object OwnPod(const std::string& role) const {
    kube::Object pod(kube::kPods, kWorkerKey);
    pod.set_label("app", "elasticdl");
    pod.set_label("elasticdl-job-name", "iris");
    pod.set_label("elasticdl-replica-type", role);
    pod.AddOwner(master_);
    return pod;
  }

  // Waits until `count` events match.
  void AwaitEvent(std::string_view what,
                  const std::function<bool(const job::ReplicaEvent&)>& matches, int count = 1) {
    ASSERT_OK(AwaitPolling(what, [&] {
      const auto events = recorder_.Events();
      return std::count_if(events.begin(), events.end(), matches) >= count;
    }));
  }

  static job::ReplicaSpec Worker(int64_t id = 0) {
    return {.name = "iris-edljob-worker-" + std::to_string(id),
            .role = job::Role::kWorker,
            .id = id,
            .command = {"train"}};
  }

  // Launches workers and waits until the backend reports them as running.
  void LaunchAndRun(int64_t count) {
    for (int64_t id = 0; id < count; ++id) {
      const std::string name = Worker(id).name;
      ASSERT_EQ(backend_->Launch(Worker(id)), Ok());
      kube::Object pod = server_.Get(kube::kPods, {"ml", name}).value();
      pod.fields()["status"] = json::parse(kRunningStatus);
      pod.fields()["status"]["containerStatuses"][0]["name"] = name;
      server_.Put(kube::kPods, pod);
    }
    for (int64_t id = 0; id < count; ++id) {
      ASSERT_TRUE(recorder_.Await(Kind::kRunning, Worker(id).name).has_value());
    }
  }

  // Waits until the pod of the worker exists, and sets its status as a kubelet does.
  void SetStatus(const std::string& status, const std::string& metadata = "{}") {
    ASSERT_OK(AwaitPolling("the pod of worker 0",
                           [&] { return server_.Get(kube::kPods, kWorkerKey).ok(); }));
    kube::Object pod = server_.Get(kube::kPods, kWorkerKey).value();
    pod.fields()["status"] = json::parse(status);
    pod.metadata().update(json::parse(metadata));
    server_.Put(kube::kPods, pod);
  }

  kube::ApiServer server_;
  SystemClock clock_;
  kube::Connection connection_{server_.config(), clock_, {}};
  kube::OwnerReference master_;
  EventRecorder recorder_;
  std::optional<KubernetesBackend> backend_;
};

TEST_F(KubernetesBackendTest, KeepsWhatAQuotaRefusesPendingAndTriesAgain) {
  Start();
  server_.Inject(
      {.part = "POST /api/v1/namespaces/ml/pods", .times = 2, .status = 403, .body = kForbidden});

  ASSERT_EQ(backend_->Launch(Worker()), Ok());

  const auto pending = recorder_.Await(Kind::kPending, kWorker);
  ASSERT_TRUE(pending.has_value());
  EXPECT_THAT(pending->reason, HasSubstr("exceeded quota: small"));
  server_.AwaitRequests("POST /api/v1/namespaces/ml/pods", 3);
}

TEST_F(KubernetesBackendTest, ReportsPermanentErrors) {
  Start();
  server_.Inject({.part = "POST /api/v1/namespaces/ml/pods",
                  .status = 403,
                  .body = R"({"kind": "Status", "code": 403, "reason": "Forbidden",
                              "message": "no PriorityClass with name high was found"})"});
  const Status launched = backend_->Launch(Worker());
  EXPECT_THAT(launched, StatusIs(Code::kPermissionDenied));
  EXPECT_THAT(launched.message(), HasSubstr("no PriorityClass with name high was found"));
}

TEST_F(KubernetesBackendTest, StopsAReplicaWhosePodWasNeverCreated) {
  Start();
  server_.Inject({.part = "POST /api/v1/namespaces/ml/pods",
                  .times = 1'000'000,
                  .status = 403,
                  .body = kForbidden});
  ASSERT_EQ(backend_->Launch(Worker()), Ok());
  ASSERT_TRUE(recorder_.Await(Kind::kPending, kWorker).has_value());

  ASSERT_EQ(backend_->Stop(kWorker, std::chrono::seconds(1)), Ok());

  const auto exited = recorder_.Await(Kind::kExited, kWorker);
  ASSERT_TRUE(exited.has_value());
  EXPECT_EQ(exited->cause.kind, job::ExitCause::Kind::kKilled);
}

TEST_F(KubernetesBackendTest, LeavesPodsOfAnEarlierJobAlone) {
  kube::Object old(kube::kPods, kWorkerKey);
  old.set_label("app", "elasticdl");
  old.set_label("elasticdl-job-name", "iris");
  old.set_label("elasticdl-replica-type", "worker");
  old.AddOwner({.api_version = "v1", .kind = "Pod", .name = "m", .uid = "another"});
  server_.Put(kube::kPods, old);
  Start();

  ASSERT_EQ(backend_->Launch(Worker()), Ok());

  const auto pending = recorder_.Await(Kind::kPending, kWorker);
  ASSERT_TRUE(pending.has_value());
  EXPECT_THAT(pending->reason, HasSubstr("of an earlier job still exists"));
  server_.Remove(kube::kPods, kWorkerKey);
  server_.AwaitRequests("POST /api/v1/namespaces/ml/pods", 2);
}

TEST_F(KubernetesBackendTest, PointsTheServiceOfASlotAtItsReplica) {
  Start({{"need_tf_config", "true"}});
  ASSERT_EQ(backend_->Launch(Worker(0)), Ok());
  ASSERT_EQ(backend_->Launch(Worker(4)), Ok());  // the same slot again

  const auto service = server_.Get(kube::kServices, kWorkerKey);
  ASSERT_OK(service);
  EXPECT_EQ(service->fields()["spec"]["selector"]["elasticdl-replica-id"], "4");
}

TEST_F(KubernetesBackendTest, ReportsALostNodeAndDeletesNothing) {
  Start();
  ASSERT_EQ(backend_->Launch(Worker()), Ok());
  SetStatus(kRunningStatus);
  const auto running = recorder_.Await(Kind::kRunning, kWorker);
  ASSERT_TRUE(running.has_value());
  EXPECT_EQ(running->host, "10.0.0.7");
  EXPECT_FALSE(running->node_lost);

  SetStatus(kLostStatus);
  AwaitEvent("an event with node_lost",
             [](const job::ReplicaEvent& event) { return event.node_lost; });
  SetStatus(kRunningStatus);
  AwaitEvent(
      "a second event without node_lost",
      [](const job::ReplicaEvent& event) {
        return event.kind == Kind::kRunning && !event.node_lost;
      },
      2);

  EXPECT_EQ(server_.CountRequests("DELETE"), 0);
}

TEST_F(KubernetesBackendTest, DeletesWhatWasStoppedUntilItIsGone) {
  Start();
  ASSERT_EQ(backend_->Launch(Worker()), Ok());
  SetStatus(kRunningStatus);
  ASSERT_TRUE(recorder_.Await(Kind::kRunning, kWorker).has_value());
  server_.Inject({.part = "DELETE", .times = 2, .status = 403, .body = R"({"kind": "Status",
      "code": 403, "message": "pods is forbidden: User x cannot delete resource pods"})"});

  ASSERT_EQ(backend_->Stop(kWorker, std::chrono::seconds(1)), Ok());

  EXPECT_TRUE(recorder_.Await(Kind::kExited, kWorker).has_value());
  EXPECT_EQ(server_.CountRequests("DELETE"), 3);
  EXPECT_THAT(server_.Get(kube::kPods, kWorkerKey), StatusIs(Code::kNotFound));
}

TEST_F(KubernetesBackendTest, DeletesAPodThatAppearsAfterItWasStopped) {
  Start();
  server_.Inject({.part = "POST /api/v1/namespaces/ml/pods",
                  .times = 1'000'000,
                  .status = 403,
                  .body = kForbidden});
  ASSERT_EQ(backend_->Launch(Worker()), Ok());
  ASSERT_EQ(backend_->Stop(kWorker, std::chrono::seconds(1)), Ok());
  ASSERT_TRUE(recorder_.Await(Kind::kExited, kWorker).has_value());

  // A create call that timed out, but that the server executed.
  server_.Put(kube::kPods, OwnPod("worker"));

  server_.AwaitRequests("DELETE /api/v1/namespaces/ml/pods/iris-edljob-worker-0", 1);
}

TEST_F(KubernetesBackendTest, StopsANameThatItHasNotListedYet) {
  server_.Inject(
      {.part = "GET /api/v1/namespaces/ml/pods?", .times = 2, .status = 503, .body = "away"});
  server_.Put(kube::kPods, OwnPod("worker"));
  Make();

  ASSERT_EQ(backend_->Stop(kWorker, std::chrono::seconds(1)), Ok());

  backend_->Watch(recorder_.Watcher());
  EXPECT_TRUE(recorder_.Await(Kind::kExited, kWorker).has_value());
}

TEST_F(KubernetesBackendTest, EndsASidecarThatOutlivesItsReplica) {
  Start();
  ASSERT_EQ(backend_->Launch(Worker()), Ok());
  SetStatus(R"({"phase": "Running", "containerStatuses": [
      {"name": "iris-edljob-worker-0", "state": {"terminated": {"exitCode": 0}}},
      {"name": "proxy", "ready": true, "state": {"running": {}}}]})");

  const auto exited = recorder_.Await(Kind::kExited, kWorker);
  ASSERT_TRUE(exited.has_value());
  EXPECT_EQ(exited->cause.kind, job::ExitCause::Kind::kSucceeded);
  server_.AwaitRequests("DELETE /api/v1/namespaces/ml/pods/iris-edljob-worker-0", 1);
}

TEST_F(KubernetesBackendTest, KeepsPodsThatHaveEndedForTheirLogs) {
  Start();
  ASSERT_EQ(backend_->Launch(Worker(0)), Ok());
  SetStatus(R"({"phase": "Succeeded", "containerStatuses": [
      {"name": "iris-edljob-worker-0", "state": {"terminated": {"exitCode": 0}}}]})");
  ASSERT_TRUE(recorder_.Await(Kind::kExited, kWorker).has_value());
  ASSERT_EQ(backend_->Launch(Worker(1)), Ok());

  EXPECT_TRUE(backend_->EndAll(EventRecorder::kTimeout).empty());

  EXPECT_OK(server_.Get(kube::kPods, kWorkerKey));
  EXPECT_THAT(server_.Get(kube::kPods, {"ml", Worker(1).name}), StatusIs(Code::kNotFound));
}

TEST_F(KubernetesBackendTest, DeletesManyWithOneCall) {
  Start();
  LaunchAndRun(100);

  EXPECT_TRUE(backend_->EndAll(EventRecorder::kTimeout).empty());

  // On a slow machine the backend repeats the call before it has seen all deletions.
  EXPECT_GE(server_.CountRequests("DELETE /api/v1/namespaces/ml/pods?"), 1);
  EXPECT_LT(server_.CountRequests("DELETE"), 50);
  EXPECT_OK(server_.Get(kube::kPods, {"ml", "elasticdl-iris-master"}));
}

TEST_F(KubernetesBackendTest, DeletesOneByOneWhereItMayNotDeleteManyAtOnce) {
  Start();
  constexpr int kPods = 40;
  LaunchAndRun(kPods);
  server_.Inject({.part = "DELETE /api/v1/namespaces/ml/pods?", .status = 403, .body = R"({
      "kind": "Status", "code": 403, "message": "pods is forbidden: cannot deletecollection"})"});

  EXPECT_TRUE(backend_->EndAll(EventRecorder::kTimeout).empty());

  EXPECT_EQ(server_.CountRequests("DELETE /api/v1/namespaces/ml/pods/"), kPods);
}

TEST_F(KubernetesBackendTest, WaitsForAPermissionThatIsMissing) {
  Start();
  server_.Inject({.part = "POST /api/v1/namespaces/ml/pods",
                  .status = 403,
                  .body = R"({"kind": "Status", "code": 403, "reason": "Forbidden",
                              "message": "pods is forbidden: User \"system:serviceaccount:ml:x\" cannot create resource \"pods\""})"});
  // The connection reads its token again and repeats a call that got 401, so one is not enough.
  server_.Inject({.part = "POST /api/v1/namespaces/ml/pods", .times = 2, .status = 401});

  ASSERT_EQ(backend_->Launch(Worker()), Ok());

  const auto pending = recorder_.Await(Kind::kPending, kWorker);
  ASSERT_TRUE(pending.has_value());
  EXPECT_THAT(pending->reason, HasSubstr("cannot create resource"));
  AwaitEvent("a pending event about rejected credentials", [](const job::ReplicaEvent& event) {
    return event.kind == Kind::kPending &&
           event.reason.find("rejects the credentials") != std::string::npos;
  });
  if (HasFatalFailure()) return;
  SetStatus(kRunningStatus);
  EXPECT_TRUE(recorder_.Await(Kind::kRunning, kWorker).has_value());
}

TEST_F(KubernetesBackendTest, RecreatesADeletedService) {
  Start({{"need_tf_config", "true"}});
  ASSERT_EQ(backend_->Launch(Worker(7)), Ok());
  server_.AwaitRequests("GET /api/v1/namespaces/ml/services", 1);
  const kube::ObjectKey slot{"ml", kWorker};

  server_.Remove(kube::kServices, slot);
  server_.AwaitRequests("POST /api/v1/namespaces/ml/services", 3);  // with the master's own

  server_.AwaitRequests("GET /api/v1/namespaces/ml/services",
                        server_.CountRequests("GET /api/v1/namespaces/ml/services") + 1);
  const auto service = server_.Get(kube::kServices, slot);
  ASSERT_OK(service);
  EXPECT_EQ(service->fields()["spec"]["selector"]["elasticdl-replica-id"], "7");
  EXPECT_OK(server_.Get(kube::kServices, {"ml", "elasticdl-iris-master"}));
}

TEST_F(KubernetesBackendTest, ReportsAPodThatWasDeletedUnseenAsKilled) {
  Start();
  ASSERT_EQ(backend_->Launch(Worker()), Ok());

  server_.RemoveUnseen(kube::kPods, kWorkerKey);
  server_.ExpireWatches();

  const auto exited = recorder_.Await(Kind::kExited, kWorker);
  ASSERT_TRUE(exited.has_value());
  EXPECT_EQ(exited->cause.kind, job::ExitCause::Kind::kKilled);
}

TEST_F(KubernetesBackendTest, ReadsTheEndOfALogWithoutTheRest) {
  Start();
  ASSERT_EQ(backend_->Launch(Worker()), Ok());
  server_.SetLog(kWorkerKey, std::string(1'000, 'x') + "\nlast\n");

  const auto tail = backend_->Tail(kWorker, 20, 100);

  ASSERT_OK(tail);
  EXPECT_THAT(*tail, testing::EndsWith("\nlast\n"));
  EXPECT_EQ(tail->size(), 100u);
  EXPECT_EQ(server_.CountRequests("tailLines=20"), 1);
  EXPECT_EQ(server_.CountRequests("limitBytes="), 1);
}

TEST_F(KubernetesBackendTest, ShowsWhatUsersWriteToTheMastersPod) {
  Start();
  std::mutex mutex;
  std::condition_variable changed;
  std::string seen;
  backend_->WatchMaster([&](const kube::Object& pod) {
    const std::lock_guard lock(mutex);
    const auto notes = pod.annotations();
    if (notes.contains("note")) seen = notes.at("note");
    changed.notify_all();
  });

  kube::Object master = server_.Get(kube::kPods, {"ml", "elasticdl-iris-master"}).value();
  master.set_label("app", "elasticdl");
  master.set_label("elasticdl-job-name", "iris");
  master.set_annotation("note", "hello");
  server_.Put(kube::kPods, master);

  std::unique_lock lock(mutex);
  EXPECT_TRUE(changed.wait_for(lock, EventRecorder::kTimeout, [&] { return seen == "hello"; }));
}

}  // namespace
}  // namespace edl::backend::kubernetes
