#pragma once

#include "base/flags.h"
#include "base/status.h"
#include "cli/platform.h"

namespace edl::cli {

// All that was said about a job: by the command line (`given`, of TrainFlags), the file that it
// names, the folder of the job to resume, the environment.
Result<FlagValues> GatherFlags(Platform& platform, const FlagValues& given);

}  // namespace edl::cli
