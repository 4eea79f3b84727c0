#pragma once

#include <chrono>

namespace edl {

using Duration = std::chrono::nanoseconds;
// A point on a monotonic axis: for durations and deadlines within one process.
using Time = std::chrono::time_point<std::chrono::steady_clock, Duration>;
// A point in calendar time, which may jump: for timestamps in logs, files and messages.
using WallTime = std::chrono::time_point<std::chrono::system_clock, Duration>;

// Time as a dependency: whoever asks for the time takes a Clock. Thread-safe.
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
