#include "ps/slab.h"

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::ps {
namespace {

size_t Mappings() {
  std::ifstream maps("/proc/self/maps");
  size_t lines = 0;
  for (std::string line; std::getline(maps, line);) ++lines;
  return lines;
}

TEST(Pages, AreZeroHoweverManyThereAre) {
  for (const size_t bytes : {size_t{1}, size_t{4096}, Pages::kLarge - 1, Pages::kLarge}) {
    const Result<Pages> pages = Pages::Make(bytes);
    ASSERT_OK(pages);
    EXPECT_GE(pages->size(), bytes);
    EXPECT_LT(pages->size(), bytes + (size_t{2} << 20));
    for (size_t at = 0; at < bytes; ++at) ASSERT_EQ(pages->data()[at], std::byte{0});
  }
}

TEST(Pages, ReportMemoryThatCannotBeAllocated) {
  EXPECT_THAT(Pages::Make(size_t{1} << 60), StatusIs(Code::kResourceExhausted));
}

// Linux allows 65,530 mappings in a process.
TEST(Pages, LieSideBySideInFewMappings) {
  const size_t before = Mappings();
  std::vector<Pages> many;
  many.reserve(500);
  for (int i = 0; i < 500; ++i) many.push_back(*Pages::Make(Pages::kLarge));
  EXPECT_LT(Mappings() - before, 100U);
}

TEST(Pages, ThatWereUsedBeforeAreZeroAgain) {
  for (int i = 0; i < 3; ++i) {
    const Result<Pages> pages = Pages::Make(Pages::kLarge);
    ASSERT_EQ(pages->data()[12345], std::byte{0});
    std::memset(pages->data(), 7, Pages::kLarge);
  }
}

TEST(Slabs, AllocateMemoryOnlyForExistingBlocks) {
  Slabs slabs(144);
  EXPECT_EQ(slabs.bytes(), 0U);
  for (uint32_t number = 0; number < 100; ++number) {
    ASSERT_OK(slabs.Reserve(1));
    ASSERT_EQ(slabs.Take(), number);
    std::memset(slabs.At(number), static_cast<int>(number), 144);
  }
  EXPECT_LE(slabs.bytes(), 2U * 100 * 144);
  for (uint32_t number = 0; number < 100; ++number) {
    EXPECT_EQ(slabs.At(number)[143], std::byte{static_cast<uint8_t>(number)});
  }
}

TEST(Slabs, KeepBlocksWhenTheyBecomeMany) {
  Slabs slabs(1024);
  for (uint32_t number = 0; number < 70'000; ++number) {  // of several slabs
    ASSERT_OK(slabs.Reserve(1));
    ASSERT_EQ(slabs.Take(), number);
    std::memcpy(slabs.At(number), &number, sizeof(number));
  }
  for (uint32_t number = 0; number < 70'000; ++number) {
    uint32_t kept = 0;
    std::memcpy(&kept, slabs.At(number), sizeof(kept));
    ASSERT_EQ(kept, number);
  }
}

TEST(Slabs, MoveNoBlockWithinTheReservation) {
  Slabs slabs(64);
  ASSERT_OK(slabs.Reserve(1000));
  const std::byte* const first = slabs.At(slabs.Take());
  for (int i = 1; i < 1000; ++i) slabs.Take();
  EXPECT_EQ(slabs.At(0), first);
}

TEST(Slabs, RejectMoreBlocksThanNumbers) {
  Slabs slabs(8);
  EXPECT_THAT(slabs.Reserve(size_t{Slabs::kMost} + 1), StatusIs(Code::kResourceExhausted));
  EXPECT_EQ(slabs.bytes(), 0U);
}

}  // namespace
}  // namespace edl::ps
