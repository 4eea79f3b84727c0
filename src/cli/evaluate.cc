#include "cli/train.h"
#include "cli/verbs.h"

namespace edl::cli {

int Evaluate(Platform& platform, const FlagValues& flags) {
  return RunJob(platform, flags, job::ModelJobType::kEvaluation);
}

}  // namespace edl::cli
