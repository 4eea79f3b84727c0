#pragma once

#include "base/flags.h"
#include "cli/platform.h"
#include "job/model_spec.h"

namespace edl::cli {

// Runs a job of this type: the verbs train, evaluate and predict. Returns the exit code.
int RunJob(Platform& platform, const FlagValues& given, job::ModelJobType type);

}  // namespace edl::cli
