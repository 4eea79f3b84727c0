// The operator may die between any two writes. Random schedules check that the next one continues
// as if nothing had happened.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>

#include "reconciler/testing/cluster_model.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace edl::reconciler {
namespace {

using nlohmann::json;

// More of them: EDL_CRASH_SCHEDULES=100000 build/dev/src/reconciler/reconciler_test
uint64_t NumSchedules() {
  const char* given = std::getenv("EDL_CRASH_SCHEDULES");
  return given == nullptr ? 50 : std::strtoull(given, nullptr, 10);
}

enum class End { kSucceeds, kFailsForGood, kFailsTooOften };

// What the programs of a job do, whenever the operator dies.
struct Script {
  json job;
  // How often each pod fails with 137 before it succeeds.
  std::map<std::string, int> failures;
  End end = End::kSucceeds;
  // The replica without which the job cannot succeed, and which decides how it ends.
  std::string decider;
};

Script RandomScript(std::mt19937_64& random) {
  const auto upto = [&](int most) { return static_cast<int>(random() % (most + 1)); };
  const char* const policies[] = {"None", "Running", "All"};
  json roles = {{"Worker", Role(1 + upto(3), "ExitCode")}};
  if (upto(1) == 1) roles["Chief"] = Role(1, "ExitCode");
  if (upto(1) == 1) roles["PS"] = Role(1 + upto(1), "OnFailure");
  Script script{.job = JobObject(roles, {{"cleanPodPolicy", policies[upto(2)]}}), .failures = {}};
  script.job["spec"]["successPolicy"] = "AllWorkers";
  for (int i = 0; i < 4; ++i) script.failures[ReplicaName("j", ReplicaType::kWorker, i)] = upto(3);
  script.failures["j-chief-0"] = upto(2);
  script.decider = roles.contains("Chief") ? "j-chief-0" : "j-worker-0";
  script.end = std::array{End::kSucceeds, End::kFailsForGood, End::kFailsTooOften}.at(upto(2));
  if (script.end == End::kFailsTooOften) {
    const int limit = 1 + upto(2);
    script.job["spec"]["runPolicy"]["backoffLimit"] = limit;
    script.failures[script.decider] = limit;
  }
  return script;
}

// The exit code of a pod that ends now.
int NextExit(Script& script, const std::string& pod) {
  if (script.failures[pod]-- > 0) return 137;
  return script.end == End::kFailsForGood && pod == script.decider ? 1 : 0;
}

bool IsServer(const std::string& pod) { return pod.find("-ps-") != std::string::npos; }

// Whether the pod runs and has not ended.
bool Runs(ClusterModel& cluster, const std::string& pod) {
  return !cluster.pod(pod).deleting() &&
         kube::PodStateOf(cluster.pod(pod)).phase == kube::PodPhase::kRunning;
}

// Lets the cluster move by one random step. Only pods that run may end.
void Move(ClusterModel& cluster, Script& script, std::mt19937_64& random) {
  cluster.RunAll();
  std::vector<std::string> names = cluster.pods();
  std::shuffle(names.begin(), names.end(), random);
  for (const std::string& name : names) {
    if (!Runs(cluster, name)) continue;
    if (random() % 4 == 0) {
      cluster.Disrupt(name, "PreemptionByScheduler");
    } else if (!IsServer(name) && random() % 2 == 0) {
      cluster.Exit(name, NextExit(script, name));
    } else {
      continue;
    }
    break;
  }
  if (random() % 2 == 0) cluster.Reap();
  cluster.Wait(std::chrono::seconds(random() % 400));
}

// A user suspends the job now and then, for a while.
void SuspendOrResume(ClusterModel& cluster, std::mt19937_64& random) {
  json& suspended = cluster.job()["spec"]["runPolicy"]["suspend"];
  const bool is_suspended = suspended.is_boolean() && suspended.get<bool>();
  if (random() % (is_suspended ? 4 : 40) == 0) suspended = !is_suspended;
}

// The failures that the operator must have counted when the job has ended.
int64_t FailuresOf(const Script& before, const Script& after) {
  int64_t sum = 0;
  for (const auto& [pod, left] : after.failures) {
    sum += before.failures.at(pod) - std::max(left, 0);
  }
  return sum;
}

void CheckEnd(const Script& script, const Script& left, const JobStatus& status) {
  EXPECT_EQ(status.conditions.IsTrue(kSucceeded), script.end == End::kSucceeds);
  EXPECT_EQ(status.conditions.IsTrue(kFailed), script.end != End::kSucceeds);
  EXPECT_TRUE(status.completion_time.has_value());
  EXPECT_TRUE(status.replacing.empty());
  if (script.end == End::kFailsForGood) {
    EXPECT_THAT(status.conditions.Find(kFailed)->message,
                testing::HasSubstr(script.decider + ": exit code 1"));
  } else if (script.end == End::kFailsTooOften) {
    EXPECT_THAT(status.conditions.Find(kFailed)->message, testing::HasSubstr("backoff limit"));
    EXPECT_GE(status.retries, script.job["spec"]["runPolicy"]["backoffLimit"].get<int64_t>());
    EXPECT_LE(status.retries, FailuresOf(script, left));
  } else if (script.job["spec"]["tfReplicaSpecs"].contains("Chief")) {
    // A job that its chief ends may end before all failures of its workers are counted.
    EXPECT_LE(status.retries, FailuresOf(script, left));
  } else {
    EXPECT_EQ(status.retries, FailuresOf(script, left));
    EXPECT_EQ(status.NumCompleted(ReplicaType::kWorker),
              script.job["spec"]["tfReplicaSpecs"]["Worker"]["replicas"].get<int64_t>());
  }
}

void RunSchedule(uint64_t seed) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  const Script script = RandomScript(random);
  Script left = script;
  ClusterModel cluster(script.job);
  cluster.graceful = random() % 2 == 0;
  const bool suspends = random() % 2 == 0;
  for (int step = 0; !cluster.status().conditions.finished(); ++step) {
    ASSERT_LT(step, 10'000) << "the job never ends";
    // Dies before the status was written, after it, or between two actions.
    const size_t writes = random() % 3 == 0 ? static_cast<size_t>(-1) : random() % 4;
    cluster.counts_wait = random() % 2 == 0;
    cluster.Pass(writes);
    if (random() % 3 == 0) Move(cluster, left, random);
    if (suspends) SuspendOrResume(cluster, random);
  }
  for (int i = 0; i < 3; ++i) cluster.Pass(random() % 3);
  cluster.counts_wait = false;
  cluster.Reap();
  cluster.Settle();
  cluster.Reap();

  CheckEnd(script, left, cluster.status());
  const std::string policy = script.job["spec"]["runPolicy"]["cleanPodPolicy"];
  if (policy == "All") {
    EXPECT_THAT(cluster.pods(), testing::IsEmpty());
    EXPECT_THAT(cluster.services(), testing::IsEmpty());
  }
  if (policy == "Running") {
    for (const std::string& name : cluster.pods()) EXPECT_FALSE(Runs(cluster, name)) << name;
    EXPECT_EQ(cluster.pods(), cluster.services());
  }
}

TEST(Crash, AnOperatorThatDiesBetweenAnyTwoWritesIsFollowedByOneThatContinues) {
  for (uint64_t seed = 0; seed < NumSchedules() && !testing::Test::HasFailure(); ++seed) {
    RunSchedule(seed);
  }
}

TEST(Crash, AStatusThatWasNotWrittenLeadsToTheSamePlan) {
  ClusterModel cluster(JobObject({{"Worker", Role(2, "ExitCode")}}));
  cluster.Settle();
  cluster.Exit("j-worker-0", 137);
  const Plan lost = cluster.Pass(0);
  const Plan again = cluster.Pass(0);
  EXPECT_EQ(again.status, lost.status);
  EXPECT_EQ(again.actions.size(), lost.actions.size());
  EXPECT_EQ(cluster.status().retries, 0);
}

}  // namespace
}  // namespace edl::reconciler
