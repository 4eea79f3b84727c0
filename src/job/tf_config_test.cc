#include "job/tf_config.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace edl::job {
namespace {

using nlohmann::json;

const std::map<Role, std::vector<std::string>> kAddresses = {
    {Role::kChief, {"127.0.0.1:1"}},
    {Role::kPs, {"127.0.0.1:2"}},
    {Role::kWorker, {"127.0.0.1:3", "127.0.0.1:4"}},
    {Role::kEvaluator, {"127.0.0.1:5"}}};

TEST(TfConfig, ShowsTheClusterAndTheReplicasPlaceInIt) {
  EXPECT_EQ(json::parse(TfConfig(kAddresses, Role::kWorker, 1)), json::parse(R"({
    "cluster": {"chief": ["127.0.0.1:1"], "ps": ["127.0.0.1:2"],
                "worker": ["127.0.0.1:3", "127.0.0.1:4"]},
    "task": {"type": "worker", "index": 1}})"));
}

TEST(TfConfig, LeavesTheEvaluatorOutOfTheClusterEvenForItself) {
  const json config = json::parse(TfConfig(kAddresses, Role::kEvaluator, 0));

  EXPECT_FALSE(config["cluster"].contains("evaluator"));
  EXPECT_EQ(config["task"], json::parse(R"({"type": "evaluator", "index": 0})"));
}

TEST(TfConfig, LeavesEmptyRolesOut) {
  const json config =
      json::parse(TfConfig({{Role::kChief, {"h:1"}}, {Role::kPs, {}}}, Role::kChief, 0));

  EXPECT_EQ(config["cluster"], json::parse(R"({"chief": ["h:1"]})"));
}

}  // namespace
}  // namespace edl::job
