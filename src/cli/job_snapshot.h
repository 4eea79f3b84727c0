#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/job_store.h"
#include "cli/platform.h"
#include "job/job_view.h"

namespace edl::cli {

enum class Liveness { kRunning, kEnded, kInterrupted };

// The state of a job at one moment. A snapshot exists for every job, also for one with damaged
// files, so that every job can be stopped, resumed and deleted.
struct JobSnapshot {
  job::JobView view;
  Liveness liveness = Liveness::kEnded;
  std::string trouble;  // why the view may be old or incomplete; empty: it is not
  Status readable;      // FailedPrecondition: a newer version wrote the view

  // The view's state, or "interrupted" for a job that ended before its master recorded an outcome.
  std::string state() const;
  // The view as JSON with that state.
  std::string ToJson() const;
};

// Gets the view from the master of a running job. For other jobs, or when the master does not
// answer, reads the job's folder as ReadSnapshot does.
Result<JobSnapshot> TakeSnapshot(Platform& platform, const JobFolder& folder);
// The snapshot of a job that does not run. An interrupted job gets the numbers of its ledger, which
// is newer than its status file.
JobSnapshot ReadSnapshot(Platform& platform, const JobFolder& folder);

// Snapshots of all jobs on this machine, sorted by name. An unreadable job has the reason in
// `trouble`.
Result<std::vector<JobSnapshot>> TakeAllSnapshots(Platform& platform);

}  // namespace edl::cli
