#pragma once

#include <string>

#include "base/clock.h"

namespace edl::master {

// Measures how long a job has run, by the monotonic clock: jumps of the wall clock do not matter. A
// restarted master continues the measurement. The time without a master is measured by the
// monotonic clock too, or by the wall clock after a reboot or on another machine.
//
// Confined: call it on the master's loop.
class RunTime {
 public:
  // `boot` identifies this boot of this machine; empty: unknown.
  void Start(std::string boot, Time now);
  // Continues from what Save() returned. Text that cannot be parsed counts as no time.
  void Load(const std::string& saved, std::string boot, Time now, WallTime wall_now);
  std::string Save(Time now, WallTime wall_now) const;
  // The job has ended: stops the measurement. The next Load continues it.
  void End(Time now);

  double Seconds(Time now) const;

 private:
  std::string boot_;
  double before_ = 0;  // seconds until begin_
  Time begin_{};
  bool ended_ = false;
};

}  // namespace edl::master
