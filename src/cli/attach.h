#pragma once

#include "cli/job_store.h"
#include "cli/platform.h"

namespace edl::cli {

// Whether this process created the job's folder, or the job existed before (`train --resume`).
enum class FolderOrigin { kExisted, kCreated };

// Shows the progress of a job that this process has started, until the job ends, then its summary.
// Returns the exit code of the process. The first signal (Ctrl-C) stops the job, a second one kills
// its processes. For a job that does not depend on this process, see WatchJob.
//
// If the master fails before any replica was launched, prints why and removes a folder that was
// created for the job.
int AttachToJob(Platform& platform, RunningJob& job, const JobFolder& folder, FolderOrigin origin);

// Waits until the master of a detached job answers, prints how to reach the job, and returns. If
// the job ends before that, does what AttachToJob does at the end of a job.
int DetachFromJob(Platform& platform, RunningJob& job, const JobFolder& folder,
                  FolderOrigin origin);

}  // namespace edl::cli
