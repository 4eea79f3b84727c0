#include "backend/kubernetes/replica_warning.h"

#include <gtest/gtest.h>

namespace edl::backend::kubernetes {
namespace {

using Kind = job::ReplicaEvent::Kind;

TEST(ReplicaWarning, IsGivenForAReplicaThatWaitsForTheCluster) {
  const auto warning =
      WarningOf({.name = "w-0", .kind = Kind::kPending, .reason = "Unschedulable: no nodes"});

  ASSERT_TRUE(warning.has_value());
  EXPECT_EQ(warning->reason, "ReplicaWaits");
  EXPECT_EQ(warning->note, "w-0: Unschedulable: no nodes");
}

TEST(ReplicaWarning, IsGivenForAReplicaThatCannotBeLaunched) {
  const auto warning = WarningOf(
      {.name = "w-0",
       .kind = Kind::kExited,
       .cause = {.kind = job::ExitCause::Kind::kNotLaunched, .message = "no such image"}});

  ASSERT_TRUE(warning.has_value());
  EXPECT_EQ(warning->reason, "ReplicaNotLaunched");
  EXPECT_EQ(warning->note, "w-0: no such image");
}

TEST(ReplicaWarning, IsNotGivenForANormalStartOrEnd) {
  for (const char* reason : {"", "ContainerCreating", "PodInitializing"}) {
    EXPECT_FALSE(WarningOf({.name = "w-0", .kind = Kind::kPending, .reason = reason}).has_value())
        << reason;
  }
  EXPECT_FALSE(WarningOf({.name = "w-0", .kind = Kind::kRunning}).has_value());
  EXPECT_FALSE(WarningOf({.name = "w-0", .kind = Kind::kExited}).has_value());
}

}  // namespace
}  // namespace edl::backend::kubernetes
