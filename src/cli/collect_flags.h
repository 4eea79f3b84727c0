#pragma once

#include "base/flags.h"
#include "base/status.h"
#include "cli/platform.h"

namespace edl::cli {

// All flags of a job, the strongest source first: the command line (`given`, of TrainFlags), the
// file of --file, the spec of the job that is resumed, the environment.
Result<FlagValues> CollectFlags(Platform& platform, const FlagValues& given);

}  // namespace edl::cli
