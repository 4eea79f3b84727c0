#pragma once

#include "base/flags.h"
#include "cli/platform.h"
#include "job/job_spec.h"

namespace edl::cli {

enum class Where { kThisMachine, kCluster };

// One line for each reason why flags that were given change nothing there.
void SayWhatHasNoEffect(Platform& platform, const FlagValues& flags, Where where);

// Says so when a job in a cluster has no place for its parameters.
void SayWhatIsAtRisk(Platform& platform, const job::JobSpec& job);

// A line for each choice that is often taken for more than it is: a ps
// without TF_CONFIG, doubtful --envs.
void SayWhatMayBeMissed(Platform& platform, const FlagValues& flags, const job::JobSpec& job);

}  // namespace edl::cli
