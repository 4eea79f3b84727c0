#include "wire/connection.h"

#include <array>
#include <future>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "wire/socket.h"
#include "wire/testing/watches.h"

namespace edl::wire {
namespace {

// Two ends of a socket.
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

TEST(Connection, EndsWhenThereIsNoRoomToWatchIt) {
  const SystemClock clock;
  LoopThread thread(std::move(*EventLoop::Make(clock)));
  Pair pair;
  std::unique_ptr<Connection> connection;
  std::promise<Status> ended;
  bool ran_out = false;
  thread.Run([&] {
    ran_out = RunOutOfWatches();
    if (!ran_out) return;
    connection = std::make_unique<Connection>(
        thread.loop(), std::make_unique<SocketStream>(std::move(pair.near)), FrameLimits{},
        [](const Frame&) { return Connection::Taken::kYes; },
        [&](const Status& why) { ended.set_value(why); });
  });
  if (!ran_out) GTEST_SKIP() << "system calls cannot be filtered here";

  EXPECT_EQ(ended.get_future().get().code(), Code::kResourceExhausted);
  thread.Run([&] { connection.reset(); });
}

}  // namespace
}  // namespace edl::wire
