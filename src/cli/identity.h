#pragma once

#include <cstdint>

#include "base/flags.h"
#include "base/status.h"
#include "job/job_view.h"

namespace edl::cli {

// Gives the flags of a new job an id of its own.
Status BeginSubmission(FlagValues& flags);

// The submission of a resumed job. Its flags are those of its spec, overridden by what was typed
// now. Keeps the id, counts the resume, and records how much was completed according to the status
// (`before`).
Status ContinueSubmission(FlagValues& flags, const job::JobView& before);

// The view of a job that is resumed, until its master says more.
job::JobView ResumedView(job::JobView before, const FlagValues& flags);

}  // namespace edl::cli
