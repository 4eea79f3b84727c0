#include "base/process_use.h"

#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

namespace edl {
namespace {

TEST(ProcessUse, CountsTheMemoryAndTheTimeOfThisProcess) {
  const auto before = ReadProcessUse();
  ASSERT_TRUE(before);
  constexpr size_t kBytes = size_t{64} << 20;

  const std::vector<char> used(kBytes, 'x');
  volatile uint64_t sum = 0;
  auto after = ReadProcessUse();
  while (after && after->cpu_seconds < before->cpu_seconds + 0.02) {
    for (const char c : used) sum = sum + static_cast<uint64_t>(c);
    after = ReadProcessUse();
  }

  ASSERT_TRUE(after);
  EXPECT_GE(after->memory_bytes, before->memory_bytes + static_cast<int64_t>(kBytes / 2));
}

}  // namespace
}  // namespace edl
