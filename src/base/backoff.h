#pragma once

#include <functional>

#include "base/clock.h"

namespace edl {

// Exponential backoff: waits `first`, then twice as long after each failure, at most `longest`.
// Immutable.
struct BackoffLimits {
  Duration first;
  Duration longest;

  // The wait after this many failures in a row; 0 for no failures.
  Duration After(int failures) const;
  // The wait after `previous`; after Duration(0) the first one.
  Duration Following(Duration previous) const;
};

// A duration between wait / 2 and `wait`, chosen by the random number `chance` in [0, 1). Keeps
// clients that failed at the same moment from retrying at the same moment.
Duration WithJitter(Duration wait, double chance);

// The backoff of one caller that retries. Returns longer waits as long as failures follow each
// other.
//
// Confined.
class Backoff {
 public:
  // A failure this long after the previous one starts again with the first wait.
  static constexpr Duration kForgetAfter = std::chrono::minutes(2);

  // `clock` outlives this object. `chance` returns a new random number in [0, 1) for each call.
  Backoff(BackoffLimits limits, const Clock& clock, std::function<double()> chance)
      : limits_(limits), clock_(clock), chance_(std::move(chance)) {}

  // Call after each failure. Returns how long to wait, with jitter.
  Duration Next();
  // Call after a success.
  void Reset() { wait_ = Duration(0); }

 private:
  const BackoffLimits limits_;
  const Clock& clock_;
  const std::function<double()> chance_;
  Duration wait_{0};
  Time failed_at_;
};

}  // namespace edl
