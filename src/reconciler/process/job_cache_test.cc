#include "reconciler/process/job_cache.h"

#include <string>

#include "reconciler/labels.h"
#include "reconciler/pod_group.h"
#include "reconciler/tfjob.h"
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/testing/fake_clock.h"
#include "kube/text.h"

namespace edl::reconciler {
namespace {

using nlohmann::json;
using std::chrono::hours;
using std::chrono::seconds;
using Kind = kube::WatchEvent::Kind;

const kube::ObjectKey kJob{"ml", "mnist"};
const kube::ObjectKey kPod{"ml", "mnist-worker-0"};

// A pod of the job, created `ahead` of the clock.
class JobCacheTest : public testing::Test {
 protected:
  JobCacheTest() {
    kube::Object job(kTFJobs, kJob);
    job.metadata()["uid"] = "job";
    job.metadata()["resourceVersion"] = "1";
    cache_.JobListener().on_event(Kind::kAdded, job);
  }

  kube::Object Pod(Duration ahead, const std::string& uid = "pod") {
    kube::Object pod(kube::kPods, kPod);
    json& metadata = pod.metadata();
    metadata["uid"] = uid;
    metadata["resourceVersion"] = std::to_string(++version_);
    metadata["creationTimestamp"] = kube::FormatTime(clock_.WallNow() + ahead);
    metadata["labels"] = {
        {kJobNameLabel, "mnist"}, {kReplicaTypeLabel, "worker"}, {kReplicaIndexLabel, "0"}};
    return pod;
  }
  kube::Object DeletedPod(Duration ahead, int grace) {
    kube::Object pod = Pod(ahead);
    pod.metadata()["deletionTimestamp"] =
        kube::FormatTime(clock_.WallNow() + ahead + seconds(grace));
    pod.metadata()["deletionGracePeriodSeconds"] = grace;
    return pod;
  }

  void Watched(const kube::Object& pod) { cache_.PodListener().on_event(Kind::kModified, pod); }
  ReplicaPod Cached() { return cache_.Find(kJob).value().pods.at(0); }

  FakeClock clock_;
  int version_ = 1;
  int changes_ = 0;
  JobCache cache_{clock_, [this](const kube::ObjectKey&) { ++changes_; }};
};

TEST_F(JobCacheTest, APodThatLostItsLabelsIsNotCachedInItsLastState) {
  Watched(Pod({}));
  ASSERT_EQ(cache_.Find(kJob)->pods.size(), 1u);
  kube::Object changed = Pod({});
  changed.metadata()["labels"].erase(kReplicaIndexLabel);
  changes_ = 0;
  Watched(changed);
  EXPECT_TRUE(cache_.Find(kJob)->pods.empty());
  EXPECT_EQ(changes_, 1);

  Watched(Pod({}));
  ASSERT_EQ(cache_.Find(kJob)->pods.size(), 1u);
  changed.metadata()["resourceVersion"] = std::to_string(++version_);
  cache_.PodListener().on_list(
      {.items = {changed}, .resource_version = changed.resource_version()});
  EXPECT_TRUE(cache_.Find(kJob)->pods.empty());
}

TEST_F(JobCacheTest, K45_ClockSkewOnlyASuccessThatWasSeenBeforeTheDeletionCounts) {
  const auto succeeded = [](kube::Object pod) {
    const json exit = {{"exitCode", 0}, {"finishedAt", "2020-01-01T00:00:00Z"}};
    pod.fields()["status"] = {
        {"phase", "Succeeded"},
        {"containerStatuses",
         json::array({{{"name", "tensorflow"}, {"state", {{"terminated", exit}}}}})}};
    return pod;
  };
  Watched(Pod({}));
  Watched(succeeded(DeletedPod({}, 30)));
  EXPECT_EQ(Cached().outcome, PodOutcome::kTerminating);

  Watched(succeeded(Pod({}, "next")));
  kube::Object deleted = succeeded(DeletedPod({}, 30));
  deleted.metadata()["uid"] = "next";
  Watched(deleted);
  EXPECT_EQ(Cached().outcome, PodOutcome::kSucceeded);
  EXPECT_EQ(Cached().exit_code, 0);
}

TEST_F(JobCacheTest, ReportsTheStateOfAFoundPodOnce) {
  changes_ = 0;
  const kube::Object pod = Pod({});
  cache_.FoundPod(pod);
  EXPECT_EQ(changes_, 1);
  Watched(pod);
  EXPECT_EQ(changes_, 1);

  kube::Object failed = Pod({});
  failed.fields()["status"]["phase"] = "Failed";
  cache_.FoundPod(failed);
  EXPECT_EQ(changes_, 2);
}

TEST_F(JobCacheTest, DoesNotReportItsOwnWrites) {
  changes_ = 0;
  const kube::Object pod = Pod({});
  cache_.WrotePod(pod);
  Watched(pod);
  EXPECT_EQ(changes_, 0);
}

TEST_F(JobCacheTest, K45_ClockSkewDoesNotChangeTheAgeOfAPod) {
  for (const hours ahead : {hours(-2), hours(2)}) {
    const std::string uid = fmt::format("pod {}", ahead.count());
    const WallTime seen = clock_.WallNow();
    cache_.WrotePod(Pod(ahead, uid));
    EXPECT_EQ(Cached().created, seen);
    clock_.Advance(seconds(5));
    Watched(Pod(ahead, uid));
    EXPECT_EQ(Cached().created, seen);
  }
}

TEST_F(JobCacheTest, K45_ClockSkewNeverPutsAListedPodInTheFuture) {
  const WallTime now = clock_.WallNow();
  for (const hours ahead : {hours(-2), hours(2)}) {
    const kube::Object pod = Pod(ahead, fmt::format("pod {}", ahead.count()));
    cache_.PodListener().on_list({.items = {pod}, .resource_version = pod.resource_version()});
    EXPECT_EQ(Cached().created, ahead < hours(0) ? now + ahead : now);
  }
}

TEST_F(JobCacheTest, K45_ClockSkewDoesNotChangeTheGracePeriodOfAPod) {
  for (const hours ahead : {hours(-2), hours(2)}) {
    Watched(Pod(ahead));
    cache_.DeletedPod(kPod, "pod");
    EXPECT_TRUE(Cached().deletion_time.has_value());
    const WallTime seen = clock_.WallNow();
    Watched(DeletedPod(ahead, 30));
    EXPECT_EQ(Cached().deletion_time, seen + seconds(30));
    clock_.Advance(seconds(5));
    Watched(DeletedPod(ahead, 30));
    EXPECT_EQ(Cached().deletion_time, seen + seconds(30));
    cache_.PodListener().on_event(Kind::kDeleted, DeletedPod(ahead, 30));
  }
}

TEST_F(JobCacheTest, K45_FollowsPodGroupsAfterVersionsWentBack) {
  const auto group = [](const std::string& version, const std::string& phase) {
    kube::Object out(kVolcanoPodGroups, kJob);
    out.metadata()["uid"] = "group";
    out.set_resource_version(version);
    out.fields()["status"]["phase"] = phase;
    return out;
  };
  const auto phase = [&] {
    const json fields = cache_.Find(kJob)->pod_group.value().fields();
    return TextIn(FieldAt(fields, {"status"}), "phase");
  };
  cache_.PodGroupListener().on_event(Kind::kAdded, group("500", "Running"));
  ASSERT_EQ(phase(), "Running");

  cache_.PodGroupListener().on_list({.items = {group("90", "Inqueue")}, .resource_version = "100"});

  EXPECT_EQ(phase(), "Inqueue");
}

TEST_F(JobCacheTest, AReducedPodKeepsThePoliciesOfItsContainers) {
  kube::Object pod = Pod({});
  const json rules = json::array({{{"action", "Restart"}}});
  pod.fields()["spec"] = {{"restartPolicy", "Never"},
                          {"containers", json::array({{{"name", "tensorflow"},
                                                       {"image", "tf"},
                                                       {"restartPolicy", "Never"},
                                                       {"restartPolicyRules", rules}}})}};
  const json exit = {{"exitCode", 42}};
  pod.fields()["status"] = {
      {"phase", "Running"},
      {"containerStatuses",
       json::array({{{"name", "tensorflow"}, {"state", {{"terminated", exit}}}}})}};

  ReducePod(pod);
  Watched(pod);

  EXPECT_EQ(Cached().outcome, PodOutcome::kActive);
  EXPECT_EQ(Dump(pod.fields()).find("image"), std::string::npos);
}

}  // namespace
}  // namespace edl::reconciler
