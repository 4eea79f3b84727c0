#include "base/cpus.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace edl {
namespace {

namespace fs = std::filesystem;

class Cpus : public testing::Test {
 protected:
  Cpus() {
    fs::remove_all(mounted_);
    fs::create_directories(mounted_ / "pod" / "container");
  }
  void Limit(const fs::path& group, const char* text) const {
    std::ofstream(mounted_ / group / "cpu.max") << text;
  }

  const fs::path mounted_ = fs::path(testing::TempDir()) / "cgroup";
};

TEST_F(Cpus, AreAllOnlineOnesWithoutAQuota) {
  EXPECT_EQ(CpusWithin(8, mounted_, "/pod/container"), 8U);
  Limit("pod", "max 100000\n");
  EXPECT_EQ(CpusWithin(8, mounted_, "/pod/container"), 8U);
}

TEST_F(Cpus, AreLimitedByTheSmallestQuotaOfAllGroups) {
  Limit("pod", "250000 100000\n");
  EXPECT_EQ(CpusWithin(8, mounted_, "/pod/container"), 3U) << "two and a half are three threads";
  Limit("pod/container", "50000 100000\n");
  EXPECT_EQ(CpusWithin(8, mounted_, "/pod/container"), 1U);
  EXPECT_EQ(CpusWithin(8, mounted_, "/pod"), 3U);
  EXPECT_EQ(CpusWithin(2, mounted_, "/pod"), 2U);
}

TEST_F(Cpus, OfThisProcessAreAtLeastOne) { EXPECT_GE(UsableCpus(), 1U); }

}  // namespace
}  // namespace edl
