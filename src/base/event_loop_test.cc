#include "base/event_loop.h"

#include <array>
#include <future>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/testing/await.h"
#include "base/testing/fake_clock.h"
#include "base/testing/status_matchers.h"

namespace edl {
namespace {

const SystemClock kClock;

// The two ends of a socket pair.
struct Pair {
  Pair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    near = FileDescriptor(ends[0]);
    far = FileDescriptor(ends[1]);
  }
  FileDescriptor near;
  FileDescriptor far;
};

TEST(EventLoop, CallsTheCallbackAsLongAsTheDescriptorIsReady) {
  auto loop = std::move(*EventLoop::Make(kClock));
  const Pair pair;
  int calls = 0;
  ASSERT_OK(loop->Add(pair.near.get(), POLLIN, [&] {
    if (++calls == 3) loop->Stop();
  }));
  ASSERT_EQ(write(pair.far.get(), "x", 1), 1);

  loop->Run();

  EXPECT_EQ(calls, 3);
}

TEST(EventLoop, LetsACallbackRemoveItself) {
  auto loop = std::move(*EventLoop::Make(kClock));
  const Pair pair;
  int calls = 0;
  ASSERT_OK(loop->Add(pair.near.get(), POLLIN, [&] {
    ++calls;
    loop->Remove(pair.near.get());
    loop->CallAfter(Duration(0), [&] { loop->Stop(); });
  }));
  ASSERT_EQ(write(pair.far.get(), "x", 1), 1);

  loop->Run();

  EXPECT_EQ(calls, 1) << "the descriptor is still readable";
}

TEST(EventLoop, RunsPostedWorkInOrder) {
  std::vector<int> order;
  LoopThread thread(std::move(*EventLoop::Make(kClock)));
  for (int i = 0; i < 100; ++i) thread.loop().Post([&order, i] { order.push_back(i); });
  thread.Run([&] { order.push_back(100); });
  ASSERT_EQ(order.size(), 101U);
  for (int i = 0; i <= 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(EventLoop, CallsWorkUntilItReturnsFalse) {
  std::promise<void> done;
  int pieces = 0;
  LoopThread thread(std::move(*EventLoop::Make(kClock)));
  thread.loop().Post([&] {
    thread.loop().SetWork([&] {
      if (++pieces == 5) done.set_value();
      return pieces < 5;
    });
  });
  ASSERT_OK(AwaitReady(done.get_future(), "the fifth call of the work"));
  // No more calls without another event.
  thread.Run([&] { EXPECT_EQ(pieces, 5); });
}

TEST(EventLoop, RunsTimersInTheOrderOfTheirDeadlines) {
  FakeClock clock;
  auto loop = std::move(*EventLoop::Make(clock));
  std::vector<int> order;
  loop->CallAfter(std::chrono::milliseconds(2), [&] { order.push_back(2); });
  loop->CallAfter(std::chrono::milliseconds(1), [&] {
    order.push_back(1);
    loop->CallAfter(Duration(0), [&] { order.push_back(3); });
  });
  loop->Post([] {});
  loop->RunOnce();
  EXPECT_EQ(order, std::vector<int>());

  clock.Advance(std::chrono::milliseconds(2));
  loop->RunOnce();

  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

}  // namespace
}  // namespace edl
