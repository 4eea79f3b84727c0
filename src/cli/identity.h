#pragma once

#include <cstdint>

#include "base/flags.h"
#include "base/status.h"
#include "job/job_view.h"

namespace edl::cli {

// Gives the flags of a new job an id of its own.
Status BeginSubmission(FlagValues& flags);

// Of a job that is resumed, whose flags are those of its spec with what was typed now over them:
// keeps the id, counts the resume, and says how much its status (`before`) knows to be completed.
Status ContinueSubmission(FlagValues& flags, const job::JobView& before);

// The view of a job that is resumed, until its master says more.
job::JobView ResumedView(job::JobView before, const FlagValues& flags);

}  // namespace edl::cli
