#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/job_store.h"
#include "cli/platform.h"
#include "job/job_view.h"

namespace edl::cli {

enum class Liveness { kRunning, kEnded, kInterrupted };

// A job as it is now. There is always one, so that every job can be stopped, resumed and deleted,
// whatever became of its files.
struct JobSnapshot {
  job::JobView view;
  Liveness liveness = Liveness::kEnded;
  std::string trouble;  // why the view may be old or incomplete: the master did not answer
  Status readable;      // of the view: FailedPrecondition if a newer version wrote it

  // The view's state, or "interrupted" for a job that ended without its master saying how.
  std::string state() const;
  // The view as JSON with that state.
  std::string ToJson() const;
};

// Asks the master of a running job, else reads what it wrote down. The numbers of an interrupted
// job are those of its ledger, which is newer than its status.
Result<JobSnapshot> TakeSnapshot(Platform& platform, const JobFolder& folder);
// The same of a job that does not run.
JobSnapshot ReadLook(Platform& platform, const JobFolder& folder);

// The same of every job, sorted by name. Unreadable ones are shown with the reason.
Result<std::vector<JobSnapshot>> LookAtAll(Platform& platform);

}  // namespace edl::cli
