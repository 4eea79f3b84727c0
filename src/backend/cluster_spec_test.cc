#include "backend/cluster_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/testing/status_matchers.h"

namespace edl::backend {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json Pod() {
  return json::parse(R"({"metadata": {"labels": {"app": "elasticdl"}},
                         "spec": {"affinity": {"old": 1},
                                  "containers": [{"env": [{"name": "A", "value": "1"}]}, {}]}})");
}

json Adapted(std::string_view spec, job::Role role = job::Role::kWorker) {
  const Result<ClusterSpec> parsed = ClusterSpec::Parse(spec);
  EXPECT_OK(parsed);
  json pod = Pod();
  if (parsed.ok()) parsed->AdaptPod(role, pod);
  return pod;
}

TEST(ClusterSpec, ChangesNothingWhenThereIsNone) {
  EXPECT_EQ(Adapted(" \n"), Pod());
  EXPECT_EQ(Adapted("{}"), Pod());
}

TEST(ClusterSpec, MergesReplacesAndAppends) {
  const json pod = Adapted(R"({"pod_spec": {
      "labels": {"team": "ads"}, "annotations": {"note": "x"}, "affinity": {"new": 2},
      "tolerations": [{"key": "t"}], "env": [{"name": "B", "value": "2"}]}})");

  EXPECT_EQ(pod["metadata"]["labels"], (json{{"app", "elasticdl"}, {"team", "ads"}}));
  EXPECT_EQ(pod["metadata"]["annotations"], (json{{"note", "x"}}));
  EXPECT_EQ(pod["spec"]["affinity"], (json{{"new", 2}}));
  EXPECT_EQ(pod["spec"]["tolerations"], json::parse(R"([{"key": "t"}])"));
  EXPECT_EQ(pod["spec"]["containers"][0]["env"].size(), 2);
  EXPECT_EQ(pod["spec"]["containers"][1]["env"][0]["name"], "B");
}

TEST(ClusterSpec, GivesARoleItsOwnOverWhatAllHave) {
  constexpr std::string_view kSpec = R"({"pod_spec": {"labels": {"who": "all"}},
                                         "worker_pod_spec": {"labels": {"who": "worker"}}})";
  EXPECT_EQ(Adapted(kSpec)["metadata"]["labels"]["who"], "worker");
  EXPECT_EQ(Adapted(kSpec, job::Role::kPs)["metadata"]["labels"]["who"], "all");
}

TEST(ClusterSpec, KnowsTheMasterByBothNames) {
  for (const char* key : {"master_pod_spec", "edl-master_pod_spec"}) {
    const json spec = {{key, {{"labels", {{"a", "b"}}}}}};
    EXPECT_EQ(Adapted(spec.dump(), job::Role::kMaster)["metadata"]["labels"]["a"], "b") << key;
  }
}

TEST(ClusterSpec, ReadsBase64) {
  EXPECT_EQ(
      Adapted(EncodeBase64(R"({"pod_spec": {"labels": {"a": "b"}}})"))["metadata"]["labels"]["a"],
      "b");
}

TEST(ClusterSpec, AdaptsServices) {
  json service = json::parse(R"({"spec": {"type": "ClusterIP", "ports": []}})");
  ClusterSpec::Parse(R"({"service_spec": {"type": "NodePort"}})")->AdaptService(service);
  EXPECT_EQ(service["spec"]["type"], "NodePort");
  EXPECT_TRUE(service["spec"].contains("ports"));
}

TEST(ClusterSpec, AppliesPatchesOverAllElse) {
  const auto text = ClusterSpec::WithPatches(
      EncodeBase64(R"({"pod_spec": {"labels": {"a": "spec", "b": "spec"}}})"),
      {{job::Role::kWorker, json::parse(R"({"metadata": {"labels": {"a": "patch"}}})")}},
      json::parse(R"({"spec": {"type": "NodePort"}})"));
  ASSERT_OK(text);

  EXPECT_EQ(Adapted(*text)["metadata"]["labels"],
            (json{{"app", "elasticdl"}, {"a", "patch"}, {"b", "spec"}}));
  EXPECT_EQ(Adapted(*text, job::Role::kPs)["metadata"]["labels"]["a"], "spec");
  json service = json::parse(R"({"spec": {"type": "ClusterIP"}})");
  ClusterSpec::Parse(*text)->AdaptService(service);
  EXPECT_EQ(service["spec"]["type"], "NodePort");
  const std::string again = ClusterSpec::WithPatches(*text, {}, json::object()).value();
  EXPECT_EQ(Adapted(again)["metadata"]["labels"]["a"], "spec") << "patches are replaced";
}

TEST(ClusterSpec, NamesWhatIsWrong) {
  const auto error = [](std::string_view text) {
    return ClusterSpec::Parse(text).status().message();
  };
  EXPECT_THAT(error("?"), HasSubstr("expected a JSON object or its base64"));
  EXPECT_THAT(error("{"), HasSubstr("not JSON"));
  EXPECT_THAT(error(EncodeBase64("[]")), HasSubstr("expected a JSON object, found array"));
  EXPECT_THAT(error(R"({"pods": {}})"), HasSubstr("pods: unknown key"));
  EXPECT_THAT(error(R"({"pod_spec": 1})"), HasSubstr("pod_spec: expected an object"));
  EXPECT_THAT(error(R"({"ps_pod_spec": {"tolerations": {}}})"),
              HasSubstr("ps_pod_spec.tolerations: expected a list"));
  EXPECT_THAT(error(R"({"ps_pod_spec": {"image": "x"}})"),
              HasSubstr("ps_pod_spec.image: unknown key"));
  EXPECT_THAT(error(R"({"service_spec": []})"), HasSubstr("service_spec: expected an object"));
  EXPECT_THAT(error(R"({"ps_pod_patch": []})"), HasSubstr("ps_pod_patch: expected an object"));
}

}  // namespace
}  // namespace edl::backend
