#pragma once

#include "base/status.h"
#include "ps/bucket_range.h"
#include "ps/bucket_steps.h"
#include "ps/lane_parameters.h"
#include "ps/synchronous_rounds.h"
#include "ps/watermarks.h"

namespace edl::ps {

// Everything that a checkpoint of a lane contains: the parameters of its buckets, the batches that
// were applied to them, and the gradients that wait in open rounds. Confined to the lane's thread.
struct LaneState {
  explicit LaneState(const BucketRange& buckets);

  // Adds the tables and tensors of a declaration and sets the consistency. If the size of rounds
  // changes, closes the open rounds first. Errors are those of LaneParameters::Check, and change
  // nothing.
  Result<DeclaredParameters> Add(const Declaration& declaration);
  // Closes all open rounds, however few contributors they have.
  void CloseRounds();

  BucketRange buckets;
  LaneParameters parameters;
  Watermarks watermarks;
  BucketSteps steps;
  SynchronousRounds rounds;
};

}  // namespace edl::ps
