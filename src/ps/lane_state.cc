#include "ps/lane_state.h"

namespace edl::ps {

LaneState::LaneState(const BucketRange& buckets)
    : buckets(buckets),
      parameters(buckets),
      watermarks(buckets.first, buckets.end),
      steps(buckets),
      rounds(buckets) {}

Result<DeclaredParameters> LaneState::Add(const Declaration& declaration) {
  EDL_RETURN_IF_ERROR(parameters.Check(declaration));
  // Rounds of another size may have been restored. No worker would fill them as they were meant.
  if (parameters.consistency().gradients != declaration.consistency.gradients) CloseRounds();
  return parameters.Add(declaration);
}

void LaneState::CloseRounds() {
  if (parameters.in_rounds()) rounds.Close(1, steps);
}

}  // namespace edl::ps
