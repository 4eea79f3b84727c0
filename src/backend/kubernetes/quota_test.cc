#include "backend/kubernetes/quota.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace edl::backend::kubernetes {
namespace {

using job::Role;
using nlohmann::json;
using ::testing::HasSubstr;
using CheckResult = Finding::CheckResult;

PodGroup Group(Role role, int count, const std::string& cpu) {
  PodGroup group{role, count, {}};
  json& resources = group.pod.fields()["spec"]["containers"][0]["resources"];
  resources["requests"] = resources["limits"] = {{"cpu", cpu}, {"memory", "1Gi"}};
  return group;
}

kube::Object Quota(const json& hard, const json& used = json::object()) {
  return kube::Object(json{{"metadata", {{"name", "team"}, {"namespace", "ml"}}},
                           {"status", {{"hard", hard}, {"used", used}}}});
}

// One core for the master, two for each worker.
const std::vector<PodGroup> kJob = {Group(Role::kMaster, 1, "1"), Group(Role::kWorker, 4, "2")};

TEST(Quota, IsEnoughForTheWholeJob) {
  const Finding found = CheckQuota(Quota({{"requests.cpu", "10"}}, {{"requests.cpu", "1"}}), kJob);
  EXPECT_EQ(found.result, CheckResult::kOk);
  EXPECT_EQ(found.what, "quota team");
  EXPECT_EQ(found.detail, "enough for the whole job");
}

TEST(Quota, SaysHowManyWorkersItLeavesOut) {
  for (const char* name : {"cpu", "requests.cpu", "limits.cpu"}) {
    const Finding found = CheckQuota(Quota({{name, "9"}}, {{name, "2"}}), kJob);
    EXPECT_EQ(found.result, CheckResult::kOk);
    EXPECT_EQ(found.detail, "enough for 3 of 4 workers") << name;
  }
  EXPECT_EQ(CheckQuota(Quota({{"pods", "3"}}), kJob).detail, "enough for 2 of 4 workers");
}

TEST(Quota, IsMissingWhereNoWorkerWouldRun) {
  const Finding found = CheckQuota(Quota({{"requests.cpu", "4"}}, {{"requests.cpu", "2"}}), kJob);
  EXPECT_EQ(found.result, CheckResult::kMissing);
  EXPECT_EQ(found.detail,
            "requests.cpu=2 left, but the job with one worker requests requests.cpu=3");
  EXPECT_THAT(found.fix, HasSubstr("larger quota for namespace ml"));
}

TEST(Quota, NeedsNoWorkerWhereThereIsAChief) {
  const std::vector<PodGroup> job = {Group(Role::kChief, 1, "1"), Group(Role::kWorker, 4, "2")};
  EXPECT_EQ(CheckQuota(Quota({{"cpu", "1"}}), job).result, CheckResult::kOk);
  EXPECT_EQ(CheckQuota(Quota({{"cpu", "500m"}}), job).result, CheckResult::kMissing);
}

TEST(Quota, IsOfNoConcernWhereItCountsOtherThings) {
  EXPECT_EQ(CheckQuota(Quota({{"requests.storage", "0"}}), kJob).result, CheckResult::kOk);
}

TEST(Quota, CannotBeToldWhenItHoldsForSomePodsOnly) {
  kube::Object scoped = Quota({{"cpu", "0"}});
  scoped.fields()["spec"]["scopes"] = {"Terminating"};
  EXPECT_EQ(CheckQuota(scoped, kJob).result, CheckResult::kCannotTell);
}

}  // namespace
}  // namespace edl::backend::kubernetes
