#pragma once

#include <string>

#include "base/clock.h"

namespace edl::master {

// How long a job has run, by the monotonic clock: a jump of the wall clock does not show. A
// restarted master goes on with it. Within one boot of the machine the monotonic clock itself tells
// how long there was no master; after a reboot, or on another machine, the wall clock does.
//
// Confined: call it on the master's loop.
class RunTime {
 public:
  // `boot` names this boot of this machine; empty: not known.
  void Start(std::string boot, Time now);
  // Goes on with what Save() returned. What cannot be read counts as nothing.
  void Load(const std::string& saved, std::string boot, Time now, WallTime wall_now);
  std::string Save(Time now, WallTime wall_now) const;
  // From now on no time passes: the job has ended. The next Load goes on from here.
  void End(Time now);

  double Seconds(Time now) const;

 private:
  std::string boot_;
  double before_ = 0;  // seconds until begin_
  Time begin_{};
  bool ended_ = false;
};

}  // namespace edl::master
