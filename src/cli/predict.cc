#include "cli/train.h"
#include "cli/verbs.h"

namespace edl::cli {

int Predict(Platform& platform, const FlagValues& flags) {
  return RunJob(platform, flags, job::ModelJobType::kPrediction);
}

}  // namespace edl::cli
