#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "job/job_view.h"
#include "master/core.h"

namespace edl::master {

// The one thread of a master's state: takes what services and backend post, lets the core decide,
// commits once for all that came in meanwhile, and lets answers and commands go.
//
// Post is thread-safe; Run belongs to the thread that calls it.
class Loop {
 public:
  static constexpr std::chrono::milliseconds kTick{50};

  struct Outlets {
    // Commands that are durable now. Must not block.
    std::function<void(std::vector<Command>)> commands;
    // A view worth showing: on every change of state, else at most each second.
    std::function<void(const job::JobView&)> view;
    // Replicas whose output is worth reading now.
    std::function<void(std::vector<std::string>)> scan;
  };

  Loop(Core& core, const Clock& clock, Outlets outlets)
      : core_(core), clock_(clock), outlets_(std::move(outlets)) {}

  // Runs `work` on the loop, in order. Dropped once the loop has ended.
  void Post(std::function<void(Core&)> work);

  // Runs until the job is in a final state, or the ledger fails. REQUIRES: Load went well.
  Status Run();

 private:
  void Round(std::vector<std::function<void(Core&)>>& work);
  void ShowView();

  Core& core_;
  const Clock& clock_;
  const Outlets outlets_;
  Time last_tick_;
  Time last_view_;
  uint64_t shown_ = 0;
  job::JobState shown_state_ = job::JobState::kStarting;

  Mutex mutex_;
  CondVar posted_;
  std::vector<std::function<void(Core&)>> inbox_ GUARDED_BY(mutex_);
  bool ended_ GUARDED_BY(mutex_) = false;
};

}  // namespace edl::master
