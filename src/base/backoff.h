#pragma once

#include <functional>

#include "base/clock.h"

namespace edl {

// How long to wait between attempts: `first`, then twice as long each time, up to `longest`.
// Immutable.
struct BackoffLimits {
  Duration first;
  Duration longest;

  // The wait after so many failures in a row; none for 0 and less.
  Duration After(int failures) const;
  // The wait that follows `previous`; Duration(0): the first.
  Duration Following(Duration previous) const;
};

// Between half of `wait` and all of it, by `chance` in [0, 1): those who failed at the same moment
// do not all come back at the same moment.
Duration WithJitter(Duration wait, double chance);

// Counts failures in a row for somebody who waits after each.
//
// Confined.
class Backoff {
 public:
  // A failure that comes so long after the one before it is the first of a new row.
  static constexpr Duration kForgetAfter = std::chrono::minutes(2);

  // `clock` outlives it. `chance` returns a number in [0, 1), another one each time.
  Backoff(BackoffLimits limits, const Clock& clock, std::function<double()> chance)
      : limits_(limits), clock_(clock), chance_(std::move(chance)) {}

  // How long to wait after one more failure, with jitter.
  Duration Next();
  // An attempt has succeeded.
  void Reset() { wait_ = Duration(0); }

 private:
  const BackoffLimits limits_;
  const Clock& clock_;
  const std::function<double()> chance_;
  Duration wait_{0};
  Time failed_at_;
};

}  // namespace edl
