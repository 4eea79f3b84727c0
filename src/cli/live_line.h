#pragma once

#include <string>

#include "base/clock.h"
#include "cli/platform.h"
#include "cli/progress.h"
#include "job/job_view.h"

namespace edl::cli {

// A job's progress as it is shown while somebody looks: on a terminal one line that is drawn over
// and over, below what happens; elsewhere a line every ten seconds. Confined.
class LiveLine {
 public:
  explicit LiveLine(Platform& platform) : platform_(platform), last_(platform.clock.Now()) {}

  // The job is so now: says what has changed since the last time, and how far it is.
  void Show(const job::JobView& view);
  // Prints a line of its own.
  void Print(const std::string& line);
  // Before anything else is printed.
  void Clear();

  // What is known without having been shown.
  void set_view(job::JobView view) { view_ = std::move(view); }
  const job::JobView& view() const { return view_; }

 private:
  static constexpr std::chrono::seconds kInterval{10};

  Platform& platform_;
  Time last_;  // of a line that is not drawn over
  job::JobView view_;
  RateMeter rate_;
  bool drawn_ = false;
};

}  // namespace edl::cli
