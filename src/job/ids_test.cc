#include "job/ids.h"

#include <tuple>
#include <type_traits>

#include <gtest/gtest.h>

namespace edl::job {
namespace {

using All = std::tuple<LeaseId, Incarnation, PsIncarnation, PsEpoch, LedgerId, DatasetId,
                       LaneInServer, LaneInJob>;

// An id is made neither of another id nor, unless it is spelled out, of an integer.
template <typename To, typename From>
constexpr bool AreApart() {
  if constexpr (std::is_same_v<To, From>) {
    return !std::is_convertible_v<uint64_t, To> && !std::is_convertible_v<int, To> &&
           !std::is_convertible_v<To, uint64_t> && !std::is_convertible_v<To, bool>;
  } else {
    return !std::is_convertible_v<From, To> && !std::is_constructible_v<To, From> &&
           !std::is_assignable_v<To&, From>;
  }
}
template <typename To, typename... From>
constexpr bool IsApartFrom(const std::tuple<From...>*) {
  return (AreApart<To, From>() && ...);
}
template <typename... To>
constexpr bool AreAllApart(const std::tuple<To...>* all) {
  return (IsApartFrom<To>(all) && ...);
}
static_assert(AreAllApart(static_cast<All*>(nullptr)));

// An id costs no more than its integer.
static_assert(sizeof(LeaseId) == sizeof(uint64_t) && std::is_trivially_copyable_v<LeaseId>);
static_assert(sizeof(LaneInJob) == sizeof(uint32_t) && std::is_trivially_copyable_v<LaneInJob>);

TEST(Ids, FollowOneAnother) {
  EXPECT_EQ(PsEpoch().Next(), PsEpoch(1));
  EXPECT_LT(LeaseId(7), LeaseId(7).Next());
}

TEST(Ids, PutTheLeaseWithoutAMasterBehindEveryOther) {
  EXPECT_GT(kOwnLease, LeaseId(UINT64_MAX - 1));
}

}  // namespace
}  // namespace edl::job
