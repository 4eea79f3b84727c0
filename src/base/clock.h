#pragma once

#include <chrono>

namespace edl {

using Duration = std::chrono::nanoseconds;
// A point on a monotonic axis: for durations and deadlines within one process.
using Time = std::chrono::time_point<std::chrono::steady_clock, Duration>;
// A point in calendar time, which may jump: for timestamps in logs, files and messages.
using WallTime = std::chrono::time_point<std::chrono::system_clock, Duration>;

// Time as a dependency: code that reads the time takes a Clock, so that a test can control it.
// Exceptions, which read std::chrono directly: a wait that blocks its thread (CondVar::WaitUntil,
// poll, a gRPC deadline), because a fake clock could not end it; and the timestamps of log lines.
//
// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time Now() const = 0;
  virtual WallTime WallNow() const = 0;
};

class SystemClock final : public Clock {
 public:
  Time Now() const override { return std::chrono::steady_clock::now(); }
  WallTime WallNow() const override { return std::chrono::system_clock::now(); }
};

}  // namespace edl
