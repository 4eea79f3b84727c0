#pragma once

#include <cstdint>

#include "base/flags.h"
#include "base/status.h"
#include "job/job_view.h"

namespace edl::cli {

// Sets the flags of a new job that identify this submission.
Status BeginSubmission(FlagValues& flags);

// Updates the flags of a resumed job, which are those of its spec with the command line over them.
// Keeps the submission id, counts the resume, and records how many batches the status (`before`)
// says are completed.
Status ContinueSubmission(FlagValues& flags, const job::JobView& before);

// The view of a resumed job until its master publishes the first one.
job::JobView ResumedView(job::JobView before, const FlagValues& flags);

}  // namespace edl::cli
