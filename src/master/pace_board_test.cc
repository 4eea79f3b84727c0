#include "master/pace_board.h"

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

class PaceBoardTest : public ::testing::Test {
 protected:
  using Awaited = std::shared_ptr<std::optional<bool>>;

  Awaited Await(Incarnation session, uint64_t batches) {
    auto answer = std::make_shared<std::optional<bool>>();
    board_.Await(session, batches, kAhead, kEnd, [answer](bool ready) { *answer = ready; });
    return answer;
  }

  PaceBoard board_;
};

TEST_F(PaceBoardTest, LetsAWorkerAloneGoOn) {
  EXPECT_EQ(*Await(kFast, 0), true);
  EXPECT_EQ(*Await(kFast, 1000), true);
}

TEST_F(PaceBoardTest, HoldsWhoIsTooFarAhead) {
  Await(kFast, 0);
  Await(kSlow, 0);
  EXPECT_EQ(*Await(kFast, kAhead), true);

  const Awaited held = Await(kFast, kAhead + 1);
  EXPECT_EQ(*held, std::nullopt);

  EXPECT_EQ(*Await(kSlow, 1), true);
  EXPECT_EQ(*held, true);
}

TEST_F(PaceBoardTest, DoesNotWaitForWhoRestsOrIsGone) {
  Await(kFast, 0);
  Await(kSlow, 0);
  const Awaited held = Await(kFast, 10);

  board_.Rest(kSlow);

  EXPECT_EQ(*held, true);
}

TEST_F(PaceBoardTest, BeginsALaterWorkerBesideTheSlowest) {
  Await(kFast, 0);
  Await(kFast, 100);

  Await(kLate, 0);

  EXPECT_EQ(*Await(kFast, 100 + kAhead), true);
  EXPECT_EQ(*Await(kFast, 101 + kAhead), std::nullopt);
  EXPECT_EQ(*Await(kLate, 1), true);
}

TEST_F(PaceBoardTest, BeginsWhoComesBackBesideTheSlowest) {
  Await(kFast, 0);
  Await(kSlow, 0);
  board_.Rest(kSlow);
  Await(kFast, 100);

  EXPECT_EQ(*Await(kSlow, 1), true);

  EXPECT_EQ(*Await(kFast, 100 + kAhead), true);
}

TEST_F(PaceBoardTest, BeginsAllAnewAfterARestart) {
  EXPECT_EQ(*Await(kLate, 0), true);
  EXPECT_EQ(*Await(kFast, 1000), true);
  EXPECT_EQ(*Await(kSlow, 990), true);

  EXPECT_EQ(*Await(kFast, 1000 + kAhead), true);
  EXPECT_EQ(*Await(kFast, 1001 + kAhead), std::nullopt);
}

TEST_F(PaceBoardTest, AnswersAtTheDeadlineAndACallThatComesAgain) {
  Await(kFast, 0);
  Await(kSlow, 0);
  const Awaited first = Await(kFast, 10);
  const Awaited again = Await(kFast, 10);
  EXPECT_EQ(*first, false);

  board_.Tick(kEnd - std::chrono::seconds(1));
  EXPECT_EQ(*again, std::nullopt);
  board_.Tick(kEnd);
  EXPECT_EQ(*again, false);
}

}  // namespace
}  // namespace edl::master
