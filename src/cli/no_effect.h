#pragma once

#include "base/flags.h"
#include "cli/platform.h"
#include "job/job_spec.h"

namespace edl::cli {

enum class Where { kThisMachine, kCluster };

// Prints the flags that were given and have no effect at `where`: one line for each reason.
void PrintFlagsWithoutEffect(Platform& platform, const FlagValues& flags, Where where);

// Warns about a job in a cluster whose parameters are not saved anywhere.
void WarnAboutUnsavedParameters(Platform& platform, const job::JobSpec& job);

// Warns about flags that often do not mean what the user expects: a ps without TF_CONFIG, --envs
// that were read in an unusual way.
void WarnAboutDoubtfulFlags(Platform& platform, const FlagValues& flags, const job::JobSpec& job);

}  // namespace edl::cli
