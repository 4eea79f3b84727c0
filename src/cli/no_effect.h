#pragma once

#include "base/flags.h"
#include "cli/platform.h"

namespace edl::cli {

enum class Where { kThisMachine, kCluster };

// One line for each reason why flags that were given change nothing there.
void SayWhatHasNoEffect(Platform& platform, const FlagValues& flags, Where where);

}  // namespace edl::cli
