#include "master/sync/staleness_tracker.h"

#include <chrono>
#include <memory>
#include <optional>

#include <gtest/gtest.h>

namespace edl::master {
namespace {

constexpr Incarnation kFast(1);
constexpr Incarnation kSlow(2);
constexpr Incarnation kLate(3);
constexpr uint64_t kAhead = 2;
constexpr Time kBegin{};
constexpr Time kEnd = kBegin + std::chrono::seconds(30);

class StalenessTrackerTest : public ::testing::Test {
 protected:
  using Awaited = std::shared_ptr<std::optional<bool>>;

  Awaited Await(Incarnation session, uint64_t batches) {
    auto answer = std::make_shared<std::optional<bool>>();
    tracker_.Await(session, batches, kAhead, kEnd, [answer](bool ready) { *answer = ready; });
    return answer;
  }

  StalenessTracker tracker_;
};

TEST_F(StalenessTrackerTest, LetsAWorkerAloneGoOn) {
  EXPECT_EQ(*Await(kFast, 0), true);
  EXPECT_EQ(*Await(kFast, 1000), true);
}

TEST_F(StalenessTrackerTest, HoldsAWorkerThatIsTooFarAhead) {
  Await(kFast, 0);
  Await(kSlow, 0);
  EXPECT_EQ(*Await(kFast, kAhead), true);

  const Awaited held = Await(kFast, kAhead + 1);
  EXPECT_EQ(*held, std::nullopt);

  EXPECT_EQ(*Await(kSlow, 1), true);
  EXPECT_EQ(*held, true);
}

TEST_F(StalenessTrackerTest, DoesNotWaitForSessionsThatLeft) {
  Await(kFast, 0);
  Await(kSlow, 0);
  const Awaited held = Await(kFast, 10);

  tracker_.Leave(kSlow);

  EXPECT_EQ(*held, true);
}

TEST_F(StalenessTrackerTest, StartsALaterWorkerAtTheSlowest) {
  Await(kFast, 0);
  Await(kFast, 100);

  Await(kLate, 0);

  EXPECT_EQ(*Await(kFast, 100 + kAhead), true);
  EXPECT_EQ(*Await(kFast, 101 + kAhead), std::nullopt);
  EXPECT_EQ(*Await(kLate, 1), true);
}

TEST_F(StalenessTrackerTest, StartsAReturningWorkerAtTheSlowest) {
  Await(kFast, 0);
  Await(kSlow, 0);
  tracker_.Leave(kSlow);
  Await(kFast, 100);

  EXPECT_EQ(*Await(kSlow, 1), true);

  EXPECT_EQ(*Await(kFast, 100 + kAhead), true);
}

TEST_F(StalenessTrackerTest, StartsWhereTheWorkersAreAfterARestart) {
  EXPECT_EQ(*Await(kLate, 0), true);
  EXPECT_EQ(*Await(kFast, 1000), true);
  EXPECT_EQ(*Await(kSlow, 990), true);

  EXPECT_EQ(*Await(kFast, 1000 + kAhead), true);
  EXPECT_EQ(*Await(kFast, 1001 + kAhead), std::nullopt);
}

TEST_F(StalenessTrackerTest, AnswersAtTheDeadlineAndACallThatComesAgain) {
  Await(kFast, 0);
  Await(kSlow, 0);
  const Awaited first = Await(kFast, 10);
  const Awaited again = Await(kFast, 10);
  EXPECT_EQ(*first, false);

  tracker_.Tick(kEnd - std::chrono::seconds(1));
  EXPECT_EQ(*again, std::nullopt);
  tracker_.Tick(kEnd);
  EXPECT_EQ(*again, false);
}

}  // namespace
}  // namespace edl::master
