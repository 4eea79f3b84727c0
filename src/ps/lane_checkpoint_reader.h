#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "checkpoint/part_file.h"
#include "ps/bucket_range.h"
#include "ps/lane_state.h"

namespace edl::ps {

// What a restore takes from a checkpoint.
enum class RestoreMode {
  kResume,          // parameters, watermarks and open rounds: the job that saved it continues
  kParametersOnly,  // another job starts with these parameters
};

// Builds the state of a lane from the parts of a checkpoint (docs/formats/checkpoint.md). The parts
// may come from any number of lanes: only what belongs to this lane's buckets is taken.
//
// Call BeginPart() and Take() for each part and chunk, or Read(); then Finish(). After an error the
// reader is useless. Confined to one thread at a time.
class LaneCheckpointReader {
 public:
  LaneCheckpointReader(const BucketRange& buckets, RestoreMode mode)
      : mode_(mode), state_(buckets) {}

  const BucketRange& buckets() const { return state_.buckets; }

  // The buckets of the part that starts with `head`. DataLoss: it is not a head of this format.
  static Result<BucketRange> BucketsOf(const checkpoint::Chunk& head);

  // The next chunk is the first of a part.
  void BeginPart() { part_ = {}; }
  // Takes the next chunk of the part at `path`. DataLoss: the chunk is invalid. ResourceExhausted:
  // there is no memory for it. REQUIRES: the part has buckets of this lane.
  Status Take(const checkpoint::Chunk& chunk, std::string_view path);
  // Takes all chunks of a part. Stops after the head if the part has no buckets of this lane.
  Status Read(checkpoint::PartReader& part);

  // Whether the checkpoint must have each bucket of the lane in exactly one part.
  enum class Coverage { kComplete, kEmptyCheckpoint };
  // Returns the restored state. DataLoss: a bucket is in no part, or in several.
  Result<LaneState> Finish(Coverage coverage = Coverage::kComplete) &&;

 private:
  // What the head of the current part says about its other chunks.
  struct Part {
    bool has_head = false;
    BucketRange buckets = {};
    DeclaredParameters declared = {};
  };

  Status TakeValid(const checkpoint::Chunk& chunk);
  Status TakeHead(const checkpoint::Chunk& chunk);
  Status TakeWatermarks(const checkpoint::Chunk& chunk);
  Status TakeSteps(const checkpoint::Chunk& chunk);
  Status TakeRows(const checkpoint::Chunk& chunk);
  Status TakeCandidates(const checkpoint::Chunk& chunk);
  Status TakeBlock(const checkpoint::Chunk& chunk);
  Status TakeRoundCounts(const checkpoint::Chunk& chunk);
  Status TakeRoundRows(const checkpoint::Chunk& chunk);
  Status TakeRoundBlock(const checkpoint::Chunk& chunk);
  // The table or tensor of a chunk. InvalidArgument: the head has no such index.
  Result<Table*> TableOf(const checkpoint::Chunk& chunk) const;
  Result<TensorBlocks*> TensorOf(const checkpoint::Chunk& chunk) const;
  bool Owns(size_t bucket) const { return state_.buckets.Contains(bucket); }

  const RestoreMode mode_;
  LaneState state_;
  Part part_;
  std::vector<BucketRange> parts_;  // the buckets of each part so far
};

}  // namespace edl::ps
