#include "kube/object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/testing/status_matchers.h"

namespace edl::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr const char* kText = R"({
  "apiVersion": "v1", "kind": "Pod", "ofTheFuture": {"big": 9007199254740993, "list": [1, "2"]},
  "metadata": {
    "name": "worker-0", "namespace": "jobs", "uid": "u-1", "resourceVersion": "42",
    "labels": {"app": "elasticdl"}, "annotations": {"note": "a"},
    "creationTimestamp": "2026-11-15T10:00:00Z", "deletionTimestamp": "2026-11-15T10:00:30Z",
    "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "master", "uid": "u-0",
                         "controller": true, "blockOwnerDeletion": true}]}})";

TEST(Object, ReadsItsMetadata) {
  const auto object = Object::Parse(kText);
  ASSERT_OK(object);

  EXPECT_EQ(object->kind(), "Pod");
  EXPECT_EQ(fmt::format("{}", object->key()), "jobs/worker-0");
  EXPECT_EQ(object->uid(), "u-1");
  EXPECT_EQ(object->resource_version(), "42");
  EXPECT_THAT(object->labels(), ElementsAre(Pair("app", "elasticdl")));
  EXPECT_THAT(object->annotations(), ElementsAre(Pair("note", "a")));
  EXPECT_EQ(object->label("app"), "elasticdl");
  EXPECT_EQ(object->label("other"), std::nullopt);
  EXPECT_EQ(object->creation_time(), WallTime(std::chrono::seconds(1794736800)));
  EXPECT_EQ(object->deletion_time(), WallTime(std::chrono::seconds(1794736830)));
  EXPECT_TRUE(object->deleting());
  EXPECT_THAT(object->owners(), ElementsAre(OwnerReference{"v1", "Pod", "master", "u-0", true}));
}

TEST(Object, KeepsUnknownFields) {
  auto object = Object::Parse(kText);
  ASSERT_OK(object);

  object->set_label("app", "other");

  nlohmann::json expected = nlohmann::json::parse(kText);
  expected["metadata"]["labels"]["app"] = "other";
  EXPECT_EQ(nlohmann::json::parse(Dump(object->fields())), expected);
}

TEST(Object, ReadsMalformedFieldsAsEmpty) {
  for (const char* text :
       {"{}", R"({"metadata": 7})", R"({"metadata": {"name": 1, "labels": [2], "uid": null}})",
        R"({"metadata": {"labels": {"app": 3}, "ownerReferences": {"a": "b"}}})",
        R"({"metadata": {"annotations": "x", "deletionTimestamp": 5}})"}) {
    const auto object = Object::Parse(text);
    ASSERT_OK(object);
    EXPECT_EQ(object->key(), ObjectKey()) << text;
    EXPECT_EQ(object->uid(), "") << text;
    EXPECT_THAT(object->labels(), IsEmpty()) << text;
    EXPECT_THAT(object->annotations(), IsEmpty()) << text;
    EXPECT_THAT(object->owners(), IsEmpty()) << text;
    EXPECT_FALSE(object->deleting()) << text;
  }
  const auto owned = Object::Parse(R"({"metadata": {"ownerReferences": [7, {"uid": 8}]}})");
  EXPECT_THAT(owned->owners(), ElementsAre(OwnerReference{}, OwnerReference{}));
}

TEST(Object, RejectsOtherJson) {
  for (const char* text : {"", "[]", "7", "{", "null"}) {
    EXPECT_THAT(Object::Parse(text), StatusIs(Code::kDataLoss)) << text;
  }
  EXPECT_EQ(Object(nlohmann::json::array()), Object());
}

TEST(Object, CanBeBuiltForCreation) {
  Object master(kPods, {.ns = "jobs", .name = "master"});
  master.metadata()["uid"] = "u-0";
  Object lease(kLeases, {.ns = "jobs", .name = "job"});
  lease.set_label("app", "elasticdl");
  lease.set_annotation("note", "a");
  lease.AddOwner(master.AsOwner());

  EXPECT_EQ(lease.fields(), nlohmann::json::parse(R"({
    "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
    "metadata": {"name": "job", "namespace": "jobs", "labels": {"app": "elasticdl"},
                 "annotations": {"note": "a"},
                 "ownerReferences": [
                   {"apiVersion": "v1", "kind": "Pod", "name": "master", "uid": "u-0"}]}})"));
}

}  // namespace
}  // namespace edl::kube
