#include "cli/cluster_spec_file.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/testing/fake_platform.h"
#include "cli/verbs.h"

namespace edl::cli {
namespace {

using job::Role;
using nlohmann::json;
using ::testing::HasSubstr;

json Pod(const std::string& name) {
  return {{"metadata", {{"name", name}, {"labels", {{"app", "elasticdl"}}}}},
          {"spec", {{"containers", json::array({{{"name", name}, {"command", {"train"}}}})}}}};
}

class ClusterSpecFileTest : public testing::Test {
 protected:
  ClusterSpecFileTest() {
    std::ofstream(file_) << "cluster = ...\n";
    backend::FakeCluster& cluster = fake_.cluster.emplace();
    for (const Role role : {Role::kMaster, Role::kWorker}) {
      cluster.templates.pods[role] = Pod(std::string(NameOf(role)));
    }
    cluster.templates.service = {{"spec", {{"type", "ClusterIP"}}}};
  }

  // The file does this to every object.
  void Change(const std::function<void(json& object)>& change) {
    fake_.programs["python3"] = [this, change](const Program& python) -> Result<ProgramEnd> {
      EXPECT_EQ(python.command.back(), file_);
      const json templates = json::parse(python.input.value());
      json out;
      const auto pair = [&](const json& before) {
        json after = before;
        change(after);
        return json::array({before, after});
      };
      for (const auto& [role, pod] : templates["pods"].items()) out["pods"][role] = pair(pod);
      out["service"] = pair(templates["service"]);
      return ProgramEnd{.output = out.dump()};
    };
  }

  int Train(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"train", "--job_name=iris", "--job_command=true",
                                          "--image_name=iris:1", "--cluster_spec=" + file_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return fake_.Run(arguments);
  }

  FakePlatform fake_;
  const std::string file_ = (fake_.home() / "spec.py").string();
};

TEST_F(ClusterSpecFileTest, IsSubmittedAsPatches) {
  Change([](json& object) { object["metadata"]["annotations"]["team"] = "ads"; });

  ASSERT_EQ(Train({"--cluster_spec_json={\"pod_spec\": {\"labels\": {\"a\": \"b\"}}}"}), kExitOk)
      << fake_.err();

  const json flags = json::parse(fake_.cluster->jobs.at("iris").spec_json);
  EXPECT_EQ(flags["cluster_spec"], "") << "the master runs no Python";
  const json spec = json::parse(flags["cluster_spec_json"].get<std::string>());
  EXPECT_EQ(spec["pod_spec"]["labels"]["a"], "b");
  const json patch = json::parse(R"({"metadata": {"annotations": {"team": "ads"}}})");
  EXPECT_EQ(spec["worker_pod_patch"], patch);
  EXPECT_EQ(spec["master_pod_patch"], patch);
  EXPECT_EQ(spec["service_patch"], patch);
  json pod = Pod("iris-edljob-worker-7");
  fake_.cluster->jobs.at("iris").options.cluster_spec.AdaptPod(Role::kWorker, pod);
  EXPECT_EQ(pod["metadata"]["annotations"]["team"], "ads");
}

TEST_F(ClusterSpecFileTest, MustNotRemoveWhatAMasterNeeds) {
  Change([](json& object) {
    if (object["spec"].contains("containers")) object["spec"]["containers"][0].erase("command");
  });
  EXPECT_EQ(Train(), kExitUsage);
  EXPECT_EQ(fake_.err(), "elasticdl: --cluster_spec=" + file_ +
                             ": with_pod, of a master: removes the command of container "
                             "master\n");
  EXPECT_TRUE(fake_.cluster->jobs.empty());
}

TEST_F(ClusterSpecFileTest, ReportsTheErrorOfPython) {
  fake_.programs["python3"] = [](const auto&) -> Result<ProgramEnd> {
    return ProgramEnd{.output = R"({"error": "line 7: KeyError: 'zone'"})"};
  };
  EXPECT_EQ(Train(), kExitUsage);
  EXPECT_EQ(fake_.err(), "elasticdl: --cluster_spec=" + file_ + ": line 7: KeyError: 'zone'\n");
  fake_.programs["python3"] = [](const auto&) -> Result<ProgramEnd> {
    return ProgramEnd{.code = 139, .stderr_text = "one\nSegmentation fault\n"};
  };
  EXPECT_EQ(Train(), kExitFailed);
  EXPECT_THAT(fake_.err(), HasSubstr("python3 failed with exit code 139: Segmentation fault"));
}

TEST_F(ClusterSpecFileTest, NeedsPython) {
  EXPECT_EQ(Train(), kExitFailed);
  EXPECT_THAT(
      fake_.err(),
      HasSubstr("cannot run python3, which evaluates the file: running python3: no such file"));
}

TEST_F(ClusterSpecFileTest, MustExist) {
  EXPECT_EQ(Train({"--cluster_spec=/no/such.py"}), kExitUsage);
  EXPECT_THAT(fake_.err(),
              HasSubstr("elasticdl: --cluster_spec=/no/such.py: the file does not exist\n"));
}

}  // namespace
}  // namespace edl::cli
