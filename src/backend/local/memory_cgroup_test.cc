#include "backend/local/memory_cgroup.h"

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::backend::local {
namespace {

using Version = CgroupLocation::Version;

TEST(FindMemoryCgroup, FindsTheHierarchyOfVersionOne) {
  const auto place = FindMemoryCgroup(
      "9:name=systemd:/\n4:memory:/jobs/a\n0::/\n",
      "30 24 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
      "33 24 0:29 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n");

  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->version, Version::kV1);
  EXPECT_EQ(place->own, "/sys/fs/cgroup/memory/jobs/a");
}

TEST(FindMemoryCgroup, FindsTheUnifiedHierarchy) {
  const auto place = FindMemoryCgroup("0::/user.slice/user-1000.slice/session-3.scope\n",
                                      "30 24 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 c rw\n");

  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->version, Version::kV2);
  EXPECT_EQ(place->own, "/sys/fs/cgroup/user.slice/user-1000.slice/session-3.scope");
}

TEST(FindMemoryCgroup, SeesThroughAContainersMount) {
  const auto place = FindMemoryCgroup("4:memory:/docker/abc/inner\n",
                                      "33 24 0:29 /docker/abc /cg rw - cgroup cgroup rw,memory\n");

  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->own, "/cg/inner");
}

TEST(FindMemoryCgroup, FindsNothingWhereThereIsNothing) {
  EXPECT_EQ(FindMemoryCgroup("", "").has_value(), false);
  EXPECT_EQ(FindMemoryCgroup("0::/\n", "22 1 8:1 / / rw - ext4 /dev/sda rw\n").has_value(), false);
}

TEST(MemoryCgroups, SaysWhyThereIsNoLimit) {
  MemoryCgroups none(std::nullopt, "elasticdl-test");

  EXPECT_THAT(none.Make("worker-0", 1 << 20), StatusIs(Code::kUnimplemented));
}

}  // namespace
}  // namespace edl::backend::local
