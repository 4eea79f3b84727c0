#pragma once

#include <functional>

#include "base/clock.h"
#include "kube/timing.h"

namespace edl::kube {

// How long to wait before the next try: longer after each failure, and never the same for all who
// failed at once.
//
// Confined.
class Backoff {
 public:
  struct Limits {
    Duration first;
    Duration longest;
    // So long without a failure, and the next is the first again.
    Duration forget_after = std::chrono::minutes(2);
  };

  Backoff(Limits limits, const Timing& timing) : limits_(limits), timing_(timing) {}

  // After one more failure: between half and the whole of a time that doubles from `first`.
  Duration Next();
  // It works again.
  void Reset() { next_ = Duration(0); }

 private:
  const Limits limits_;
  const Timing timing_;
  Duration next_{0};
  Time failed_at_;
};

}  // namespace edl::kube
