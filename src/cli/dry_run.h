#pragma once

#include <string>

#include "base/flags.h"
#include "job/job_spec.h"

namespace edl::cli {

// The job that `train` would start, as JSON: backend, replicas, and every flag with its value and
// its source. Secrets are hidden.
std::string DryRun(const FlagValues& flags, const job::JobSpec& spec);

}  // namespace edl::cli
