#include "backend/kubernetes/master_pod.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace edl::backend::kubernetes {
namespace {

using ::testing::HasSubstr;

kube::Object Pod(const std::string& status, bool deleting = false) {
  nlohmann::json pod = {{"metadata", {{"name", "m"}}}, {"spec", {{"nodeName", "n2"}}}};
  if (deleting) pod["metadata"]["deletionTimestamp"] = "2026-11-15T10:00:00Z";
  pod["status"] = nlohmann::json::parse(status);
  return kube::Object(std::move(pod));
}

std::string Ended(int code, const std::string& reason, const std::string& message = "") {
  return nlohmann::json{
      {"phase", "Running"},
      {"containerStatuses",
       {{{"name", "proxy"}, {"ready", true}, {"state", {{"running", nlohmann::json::object()}}}},
        {{"name", "m"},
         {"state",
          {{"terminated", {{"exitCode", code}, {"reason", reason}, {"message", message}}}}}}}}}
      .dump();
}

TEST(MasterPod, HasEndedWhenItsOwnContainerHas) {
  EXPECT_FALSE(MasterLifeOf(Pod(Ended(0, "Completed"))).running);
  EXPECT_EQ(MasterLifeOf(Pod(Ended(0, "Completed"))).trouble, "");
  const char* proxy_ended = R"({"phase": "Running", "containerStatuses": [
      {"name": "proxy", "state": {"terminated": {"exitCode": 1}}},
      {"name": "m", "ready": true, "state": {"running": {}}}]})";
  EXPECT_TRUE(MasterLifeOf(Pod(proxy_ended)).running);
}

TEST(MasterPod, SaysWhyTheMasterDoesNotRun) {
  EXPECT_THAT(MasterLifeOf(Pod(Ended(137, "OOMKilled"))).trouble, HasSubstr("ran out of memory"));
  EXPECT_THAT(
      MasterLifeOf(Pod(Ended(128, "StartError", "exec: elasticdl: not found"))).trouble,
      HasSubstr("exec: elasticdl: not found (check that the image of --image_name has elasticdl"));
  EXPECT_EQ(MasterLifeOf(Pod(Ended(2, "Error", "one\nthe ledger cannot be written\n"))).trouble,
            "its master ended with exit code 2: the ledger cannot be written");
  EXPECT_EQ(MasterLifeOf(Pod(R"({"phase": "Failed", "reason": "Evicted",
                                 "message": "The node was low on resource: memory."})"))
                .trouble,
            "its master's pod failed: Evicted: The node was low on resource: memory.");
  EXPECT_EQ(MasterLifeOf(Pod(R"({"phase": "Failed", "conditions": [{"type": "DisruptionTarget",
                                 "status": "True", "reason": "PreemptionByScheduler"}]})"))
                .trouble,
            "its master was terminated: preempted by the scheduler");
}

TEST(MasterPod, SaysThatItsNodeIsLost) {
  const MasterLife life = MasterLifeOf(Pod(R"({"phase": "Running",
      "conditions": [{"type": "Ready", "status": "False"}],
      "containerStatuses": [{"name": "m", "ready": true, "state": {"running": {}}}]})"));
  EXPECT_TRUE(life.running);
  EXPECT_THAT(life.trouble, HasSubstr("lost contact with its master's node n2"));
}

}  // namespace
}  // namespace edl::backend::kubernetes
