#pragma once

#include "cli/job_store.h"
#include "cli/platform.h"

namespace edl::cli {

// Shows a job that runs in the foreground until it ends, then its summary; returns the exit code
// of the process. A first signal stops the job, a second one at once.
//
// `made` is whether this call's process made the folder: a job whose master could not even begin is
// then removed again.
enum class Folder { kExisted, kMade };
int Follow(Platform& platform, RunningJob& job, const JobFolder& folder, Folder made);

// Waits until the master of a job that is to run on by itself answers, or until the job has ended,
// which then is told as Follow does.
int LeaveRunning(Platform& platform, RunningJob& job, const JobFolder& folder, Folder made);

}  // namespace edl::cli
