#pragma once

#include <chrono>
#include <future>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"

// Waits of tests and test fixtures. Each has a deadline, and returns DeadlineExceeded with a
// message that says what did not happen, for ASSERT_OK or EXPECT_OK. `what` completes "did not
// happen within 60 s: ", for example "3 requests of GET /pods".
//
// They wait in real time: a FakeClock does not end them.
namespace edl {

// Long enough for a loaded machine and a sanitizer. A wait that succeeds ends at once.
constexpr Duration kAwaitTimeout = std::chrono::seconds(60);

namespace await_internal {

inline Status TimedOut(std::string_view what, Duration timeout) {
  return DeadlineExceeded("did not happen within {} s: {}",
                          std::chrono::duration<double>(timeout).count(), what);
}

}  // namespace await_internal

// Waits until condition() is true. The code that makes it true must notify `changed`. The condition
// is called with `mutex` held; a lambda that reads guarded members needs REQUIRES:
//
//   const MutexLock lock(mutex_);
//   return Await(mutex_, changed_, "an event", [&]() REQUIRES(mutex_) { return !events_.empty();
//   });
template <typename Condition>
Status Await(Mutex& mutex, CondVar& changed, std::string_view what, Condition condition,
             Duration timeout = kAwaitTimeout) REQUIRES(mutex) EDL_NO_THREAD_SAFETY_ANALYSIS {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!condition()) {
    if (!changed.WaitUntil(mutex, deadline)) {
      return condition() ? Ok() : await_internal::TimedOut(what, timeout);
    }
  }
  return Ok();
}

// Polls until condition() is true. For state that offers nothing to wait on, like a process or a
// file.
template <typename Condition>
Status AwaitPolling(std::string_view what, Condition condition, Duration timeout = kAwaitTimeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) {
      return await_internal::TimedOut(what, timeout);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return Ok();
}

// Waits until `future` is ready; the caller then gets its value without waiting.
template <typename Future>
Status AwaitReady(const Future& future, std::string_view what, Duration timeout = kAwaitTimeout) {
  return future.wait_for(timeout) == std::future_status::ready
             ? Ok()
             : await_internal::TimedOut(what, timeout);
}

}  // namespace edl
