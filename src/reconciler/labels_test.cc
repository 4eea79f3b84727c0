#include "reconciler/labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/resource.h"

namespace edl::reconciler {
namespace {

kube::Object Labelled(const kube::Object::Labels& labels) {
  kube::Object object(kube::kPods, {"ns", "p"});
  for (const auto& [name, value] : labels) object.set_label(name, value);
  return object;
}

TEST(Labels, T_L1_ASlashInTheNameOfAJobBecomesADash) {
  const auto labels = JobLabels("test/key");
  EXPECT_EQ(labels.at("training.kubeflow.org/job-name"), "test-key");
  EXPECT_EQ(labels.at("training.kubeflow.org/operator-name"), "tfjob-controller");
}

TEST(Labels, T_L1_RoleAndIndexAreReadFromLabels) {
  const auto labels = ReplicaLabels("j", ReplicaType::kPs, 3);
  EXPECT_EQ(labels.at("training.kubeflow.org/replica-type"), "ps");
  EXPECT_EQ(labels.at("training.kubeflow.org/replica-index"), "3");
  EXPECT_EQ(SlotOf(Labelled(labels)), (Slot{ReplicaType::kPs, 3}));
}

TEST(Labels, T_L1_AMissingOrWrongLabelIsNoSlot) {
  for (const char* missing : {kReplicaTypeLabel, kReplicaIndexLabel}) {
    auto labels = ReplicaLabels("j", ReplicaType::kPs, 3);
    labels.erase(missing);
    EXPECT_EQ(SlotOf(Labelled(labels)), std::nullopt) << missing;
  }
  for (const char* index : {"", "-1", "x", "1x", " 1", "99999999999"}) {
    auto labels = ReplicaLabels("j", ReplicaType::kPs, 3);
    labels[kReplicaIndexLabel] = index;
    EXPECT_EQ(SlotOf(Labelled(labels)), std::nullopt) << index;
  }
  auto labels = ReplicaLabels("j", ReplicaType::kPs, 3);
  labels[kReplicaTypeLabel] = "launcher";
  EXPECT_EQ(SlotOf(Labelled(labels)), std::nullopt);
}

TEST(Labels, OnlyTheOwnerThatControlsAnObjectIsItsController) {
  kube::Object object = Labelled({});
  EXPECT_EQ(ControllerOf(object), std::nullopt);
  object.AddOwner({.kind = "ConfigMap", .uid = "a"});
  EXPECT_EQ(ControllerOf(object), std::nullopt);
  object.AddOwner({.kind = "TFJob", .uid = "b", .controller = true});
  EXPECT_EQ(ControllerOf(object).value().uid, "b");
}

}  // namespace
}  // namespace edl::reconciler
