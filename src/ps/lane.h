#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "job/ids.h"
#include "ps/gradients.h"
#include "ps/lane_state.h"
#include "wire/messages.h"
#include "wire/placement.h"

namespace edl::ps {

// One lane of a parameter server: answers the messages of workers about the rows and blocks of its
// buckets. Each batch changes a bucket exactly once, however often it is pushed. Connections, disks
// and threads are not its concern (see LaneSession, LaneSaver, LaneRestorer). Confined to the
// lane's thread.
class Lane {
 public:
  // The lane number `place` of the job.
  Lane(const wire::Placement& placement, job::LaneInJob place)
      : state_(BucketRange::OfLane(placement, place)) {}

  // Creates the tables and tensors that do not exist yet. The result is valid until the generation
  // changes. Errors are those of LaneParameters::CheckBounds and Check, and change nothing.
  Result<DeclaredParameters> Declare(const Declaration& declaration);

  // Sets the values of tensor blocks that have none. InvalidArgument: the message is malformed.
  Result<wire::PutAnswer> Put(const DeclaredParameters& declared, const wire::Put& put,
                              std::span<const std::byte> tensors);

  // A pull that was checked.
  struct PullPlan {
    wire::Pull::Unknown unknown = wire::Pull::Unknown::kMake;
    std::vector<std::pair<Table*, std::span<const int64_t>>> tables;
    std::vector<const TensorBlocks*> tensors;
    size_t bytes = 0;  // size of the answer's tensor part
  };
  // Checks a pull. The plan refers to `declared` and `tensors`. InvalidArgument: the message is
  // malformed. NotFound: a tensor has no value yet. ResourceExhausted: there is no memory for new
  // rows.
  Result<PullPlan> Plan(const DeclaredParameters& declared, const wire::Pull& pull,
                        std::span<const std::byte> tensors) const;
  // Writes the answer's tensor part. REQUIRES: plan.bytes bytes at `out`.
  wire::PullAnswer Pull(const PullPlan& plan, std::byte* out);

  // Opens a shard for pushes. Errors are those of Watermarks::Open.
  Result<wire::OpenAnswer> Open(const wire::Open& open);
  // Applies a batch. An error, or an outcome other than kApplied, changes nothing.
  // InvalidArgument: the message is malformed, or a learning rate is invalid. NotFound: a tensor
  // has no value yet. ResourceExhausted: there is no memory for new rows.
  Result<wire::PushAnswer> Push(const DeclaredParameters& declared, const wire::Push& push,
                                std::span<const std::byte> tensors);

  // Closes the open synchronous rounds with the gradients that they have.
  void Flush() { state_.CloseRounds(); }

  // Replaces everything in this lane by a restored state. Starts a new generation: declare the
  // parameters again. REQUIRES: `state` has the same buckets, and no save of this lane is running.
  void Adopt(LaneState&& state);
  uint64_t generation() const { return generation_; }
  // Whether a shard was opened or a batch applied since the lane started or was restored. Pulls
  // that create rows, and puts, do not count as training.
  bool trained() const { return trained_; }

  LaneState& state() { return state_; }
  const LaneState& state() const { return state_; }
  // Steps (pushes or rounds) since the lane started or was restored.
  uint64_t version() const { return state_.steps.version(); }
  // Batches that were counted but not applied, because the worker found non-finite gradients.
  uint64_t refused() const { return refused_; }

 private:
  // Reserves memory for all rows that the push may create.
  Status ReserveRows(const std::vector<TableGradients>& pushes);
  // Whether the parameters that the gradients were computed with are too many rounds old.
  bool IsStale(const wire::Push& push) const;
  // The factor of the learning rate for parameters of that age.
  float ShareOfRate(const wire::Push& push) const;

  LaneState state_;
  bool trained_ = false;
  uint64_t generation_ = 1;
  uint64_t refused_ = 0;
};

}  // namespace edl::ps
