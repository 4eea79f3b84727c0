#include "base/descriptor_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/testing/status_matchers.h"

namespace edl {
namespace {

TEST(RaiseDescriptorLimit, RaisesTheSoftLimitToTheHardLimit) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = std::min<rlim_t>(256, before.rlim_max);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);

  const auto raised = RaiseDescriptorLimit();

  ASSERT_OK(raised);
  rlimit now{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &now), 0);
  EXPECT_EQ(now.rlim_cur, before.rlim_max);
  setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace
}  // namespace edl
