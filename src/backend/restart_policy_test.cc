#include "backend/restart_policy.h"

#include <gtest/gtest.h>

namespace edl::backend {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;

TEST(RestartPolicy, RestartsAtOnceAfterALongRun) {
  RestartPolicy policy;
  for (int death = 0; death < 100; ++death) EXPECT_EQ(policy.OnDeath(5s), Duration::zero());
}

TEST(RestartPolicy, WaitsLongerAfterEachShortRun) {
  RestartPolicy policy;
  for (int death = 0; death < 3; ++death) EXPECT_EQ(policy.OnDeath(1s), Duration::zero());

  EXPECT_EQ(policy.OnDeath(1s), Duration(100ms));
  EXPECT_EQ(policy.OnDeath(1s), Duration(200ms));
  EXPECT_EQ(policy.OnDeath(1s), Duration(400ms));
  EXPECT_EQ(policy.OnDeath(1s), Duration(400ms));
}

TEST(RestartPolicy, GivesUpAfterTenShortRuns) {
  RestartPolicy policy;
  for (int death = 1; death < 10; ++death) EXPECT_TRUE(policy.OnDeath(4s).has_value());

  EXPECT_EQ(policy.OnDeath(4s), std::nullopt);
}

TEST(RestartPolicy, ForgetsShortRunsAfterALongOne) {
  RestartPolicy policy;
  for (int death = 1; death < 10; ++death) EXPECT_TRUE(policy.OnDeath(1s).has_value());

  EXPECT_EQ(policy.OnDeath(60s), Duration::zero());
  EXPECT_EQ(policy.OnDeath(1s), Duration::zero());
}

}  // namespace
}  // namespace edl::backend
