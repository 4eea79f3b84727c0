#include "backend/object_patch.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace edl::backend {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json Pod(const std::string& name) {
  json pod = json::parse(R"({
      "metadata": {"labels": {"app": "elasticdl"}},
      "spec": {"restartPolicy": "Never",
               "containers": [{"command": ["train"], "image": "iris:1",
                               "resources": {"limits": {"cpu": "1"}},
                               "volumeMounts": [{"name": "job", "mountPath": "/job"}]}],
               "volumes": [{"name": "job"}]}})");
  pod["metadata"]["name"] = name;
  pod["spec"]["containers"][0]["name"] = name;
  pod["spec"]["containers"][0]["env"] = {{{"name", "ID"}, {"value", name}}};
  return pod;
}

json& Container(json& pod) { return pod["spec"]["containers"][0]; }

TEST(ObjectPatch, OfNoChangeIsEmpty) { EXPECT_EQ(MakePatch(Pod("a"), Pod("a")), json::object()); }

TEST(ObjectPatch, TransformsOneObjectIntoTheOther) {
  json changed = Pod("a");
  changed["metadata"]["annotations"]["note"] = "x";
  changed["spec"]["tolerations"] = {{{"key", "gpu"}}};
  changed["spec"].erase("restartPolicy");
  Container(changed)["resources"]["limits"].erase("cpu");
  changed["spec"]["containers"].push_back({{"name", "proxy"}, {"image", "proxy:1"}});
  json made = Pod("a");

  ApplyPatch(MakePatch(made, changed), made);

  EXPECT_EQ(made, changed);
}

TEST(ObjectPatch, KeepsFieldsThatOnlyTheOtherPodHas) {
  json changed = Pod("a");
  Container(changed)["env"].push_back({{"name", "ZONE"}, {"value", "b"}});
  Container(changed)["volumeMounts"].push_back({{"name", "cache"}, {"mountPath", "/cache"}});
  changed["spec"]["volumes"].push_back({{"name", "cache"}, {"emptyDir", json::object()}});
  json other = Pod("b");

  ApplyPatch(MakePatch(Pod("a"), changed), other);

  EXPECT_EQ(Container(other)["name"], "b");
  EXPECT_EQ(Container(other)["env"],
            json::parse(R"([{"name": "ID", "value": "b"}, {"name": "ZONE", "value": "b"}])"));
  EXPECT_EQ(Container(other)["volumeMounts"].size(), 2u);
  EXPECT_EQ(other["spec"]["volumes"], changed["spec"]["volumes"]);
}

TEST(ObjectPatch, ChangesAVariableThatIsThere) {
  json changed = Pod("a");
  Container(changed)["env"][0] = {{"name", "ID"}, {"valueFrom", {{"fieldRef", "x"}}}};
  json other = Pod("b");
  ApplyPatch(MakePatch(Pod("a"), changed), other);
  EXPECT_EQ(Container(other)["env"], Container(changed)["env"]);
}

TEST(ObjectPatch, TreatsNamesThatEqualFieldsAsNames) {
  json changed = Pod("a");
  changed["metadata"]["labels"]["env"] = "prod";
  changed["spec"]["volumes"].push_back({{"name", "volumes"}, {"emptyDir", json::object()}});
  json made = Pod("a");
  ApplyPatch(MakePatch(made, changed), made);
  EXPECT_EQ(made, changed);
}

TEST(ObjectPatch, AddsAListWhereThereWasNone) {
  json from = Pod("a");
  Container(from).erase("env");
  json changed = Pod("a");
  json other = from;
  ApplyPatch(MakePatch(from, changed), other);
  EXPECT_EQ(other, changed);
}

std::string ErrorOf(const std::function<void(json&)>& change) {
  json changed = Pod("a");
  change(changed);
  return CheckPodPatch(MakePatch(Pod("a"), changed), Pod("a")).message();
}

TEST(ObjectPatch, MayNotTakeAwayWhatTheJobNeeds) {
  EXPECT_THAT(ErrorOf([](json& pod) { pod["metadata"]["name"] = "mine"; }),
              HasSubstr("metadata.name"));
  EXPECT_THAT(ErrorOf([](json& pod) { pod["metadata"]["labels"].erase("app"); }),
              HasSubstr("the label app"));
  EXPECT_THAT(ErrorOf([](json& pod) { pod["metadata"].erase("labels"); }),
              HasSubstr("the label app"));
  EXPECT_THAT(ErrorOf([](json& pod) { Container(pod).erase("command"); }),
              HasSubstr("removes the command of container a"));
  EXPECT_THAT(ErrorOf([](json& pod) { Container(pod)["name"] = "main"; }),
              HasSubstr("removes the container a"));
  EXPECT_THAT(ErrorOf([](json& pod) { Container(pod)["env"] = json::array(); }),
              HasSubstr("removes variable ID"));
  EXPECT_THAT(ErrorOf([](json& pod) { Container(pod).erase("env"); }),
              HasSubstr("removes all variable"));
  EXPECT_THAT(ErrorOf([](json& pod) { Container(pod).erase("volumeMounts"); }),
              HasSubstr("removes all mount"));
  EXPECT_THAT(ErrorOf([](json& pod) { pod["spec"]["volumes"] = json::array(); }),
              HasSubstr("removes volume job"));
  EXPECT_THAT(ErrorOf([](json& pod) { pod.erase("spec"); }), HasSubstr("removes"));
}

TEST(ObjectPatch, MayChangeTheRest) {
  EXPECT_EQ(ErrorOf([](json& pod) {
              pod["metadata"]["labels"]["team"] = "ads";
              pod["spec"]["nodeSelector"]["zone"] = "a";
              Container(pod)["command"] = {"nice", "train"};
              Container(pod)["image"] = "mirror/iris:1";
              Container(pod).erase("resources");
            }),
            "");
}

TEST(ObjectPatch, OfAServiceMustNotChangeItsSelector) {
  const json service = json::parse(R"({"metadata": {"name": "s"}, "spec": {"selector": {"a": "b"},
                                       "ports": [{"port": 2222}]}})");
  json changed = service;
  changed["spec"]["type"] = "NodePort";
  EXPECT_EQ(CheckServicePatch(MakePatch(service, changed)), Ok());
  changed["spec"]["selector"]["a"] = "c";
  EXPECT_THAT(CheckServicePatch(MakePatch(service, changed)).message(),
              HasSubstr("changes spec.selector"));
}

}  // namespace
}  // namespace edl::backend
