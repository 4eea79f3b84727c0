#include "job/role.h"

#include <gtest/gtest.h>

namespace edl::job {
namespace {

TEST(WorkerId, IsUniqueAcrossRolesAndCanBeReadBack) {
  EXPECT_EQ(WorkerIdOf(Role::kWorker, 4), 4);
  EXPECT_EQ(WorkerIdOf(Role::kChief, 0), 1'000'000);
  EXPECT_EQ(WorkerIdOf(Role::kEvaluator, 2), 2'000'002);

  EXPECT_EQ(FromWorkerId(1'000'003), (RoleAndId{Role::kChief, 3}));
  EXPECT_EQ(FromWorkerId(7), (RoleAndId{Role::kWorker, 7}));
}

TEST(WorkerId, OutsideAllRangesHasNoRole) {
  EXPECT_FALSE(FromWorkerId(-1).has_value());
  EXPECT_FALSE(FromWorkerId(4'000'000).has_value());
}

}  // namespace
}  // namespace edl::job
