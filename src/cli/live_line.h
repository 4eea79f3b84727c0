#pragma once

#include <string>

#include "base/clock.h"
#include "cli/platform.h"
#include "cli/progress.h"
#include "job/job_view.h"

namespace edl::cli {

// Prints the progress of a job: on a terminal one line that is redrawn in place below the events,
// in other output one line every ten seconds. Confined.
class LiveLine {
 public:
  explicit LiveLine(Platform& platform) : platform_(platform), last_(platform.clock.Now()) {}

  // Prints what changed since the last view, and the progress.
  void Show(const job::JobView& view);
  // Prints `line` above the progress line.
  void Print(const std::string& line);
  // Removes the progress line. Call it before other code prints.
  void Clear();

  // Sets the view to compare with, without printing anything.
  void set_view(job::JobView view) { view_ = std::move(view); }
  const job::JobView& view() const { return view_; }

 private:
  static constexpr std::chrono::seconds kInterval{10};

  Platform& platform_;
  Time last_;  // when a line was printed last, for output that is not a terminal
  job::JobView view_;
  RateMeter rate_;
  bool drawn_ = false;
};

}  // namespace edl::cli
