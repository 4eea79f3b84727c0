#include "base/testing/await.h"

#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl {
namespace {

using ::testing::HasSubstr;

constexpr Duration kShort = std::chrono::milliseconds(5);

// A flag that another thread sets.
class Flag {
 public:
  void Set() {
    const MutexLock lock(mutex_);
    set_ = true;
    changed_.NotifyAll();
  }
  Status AwaitSet(Duration timeout) {
    const MutexLock lock(mutex_);
    return Await(
        mutex_, changed_, "the flag is set", [&]() REQUIRES(mutex_) { return set_; }, timeout);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool set_ GUARDED_BY(mutex_) = false;
};

TEST(Await, ReturnsWhenAnotherThreadMakesTheConditionTrue) {
  Flag flag;
  const std::jthread other([&] { flag.Set(); });

  EXPECT_OK(flag.AwaitSet(kAwaitTimeout));
}

TEST(Await, NamesWhatDidNotHappen) {
  Flag flag;

  EXPECT_THAT(flag.AwaitSet(kShort),
              StatusIs(Code::kDeadlineExceeded, "did not happen within 0.005 s: the flag is set"));
  EXPECT_THAT(AwaitPolling(
                  "a file appears", [] { return false; }, kShort),
              StatusIs(Code::kDeadlineExceeded, HasSubstr("a file appears")));
}

TEST(Await, PollsUntilTheConditionIsTrue) {
  int calls = 0;

  EXPECT_OK(AwaitPolling("three calls", [&] { return ++calls == 3; }));

  EXPECT_EQ(calls, 3);
}

TEST(Await, WaitsForAFuture) {
  std::promise<int> promise;
  const std::shared_future<int> future = promise.get_future().share();

  EXPECT_THAT(AwaitReady(future, "a value", kShort),
              StatusIs(Code::kDeadlineExceeded, HasSubstr("a value")));
  promise.set_value(1);
  EXPECT_OK(AwaitReady(future, "a value"));
}

}  // namespace
}  // namespace edl
