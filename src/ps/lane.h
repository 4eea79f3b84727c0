#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "checkpoint/part_file.h"
#include "ps/declaration.h"
#include "ps/record_collector.h"
#include "ps/round.h"
#include "ps/table.h"
#include "ps/tensor_share.h"
#include "ps/watermarks.h"
#include "wire/messages.h"
#include "wire/placement.h"

namespace edl::ps {

// The parameters of one lane's buckets: rows and blocks, and what was applied to them. It answers
// messages and knows nothing of how they come. Confined to the lane's thread.
class Lane {
 public:
  // The lane at that place among all of the job.
  Lane(const wire::Placement& placement, size_t place);

  // What the numbers in a connection's messages mean.
  struct Names {
    std::vector<Table*> tables;
    std::vector<TensorShare*> tensors;
  };
  // Makes what is not there yet. FailedPrecondition: something is declared otherwise already.
  // InvalidArgument: a bound is below what the lane needs. ResourceExhausted: it is too much. A
  // failure changes nothing.
  Result<Names> Declare(const Declaration& declaration);

  Result<wire::PutAnswer> Put(const Names& names, const wire::Put& put,
                              std::span<const std::byte> tensors);

  // A pull that was checked and can be carried out.
  struct PullPlan {
    wire::Pull::Unknown unknown = wire::Pull::Unknown::kMake;
    std::vector<std::pair<Table*, std::span<const int64_t>>> tables;
    std::vector<const TensorShare*> tensors;
    size_t bytes = 0;  // of the answer's tensor part
  };
  // InvalidArgument: the message is not sound. NotFound: a tensor has no value yet.
  // ResourceExhausted: there is no memory for new rows.
  Result<PullPlan> Plan(const Names& names, const wire::Pull& pull,
                        std::span<const std::byte> tensors) const;
  // REQUIRES: plan.bytes at `out`.
  wire::PullAnswer Pull(const PullPlan& plan, std::byte* out);

  Result<wire::OpenAnswer> Open(const wire::Open& open);
  // A failure changes nothing, and neither does an outcome other than kApplied.
  Result<wire::PushAnswer> Push(const Names& names, const wire::Push& push,
                                std::span<const std::byte> tensors);

  // Closes rounds that are open, with what they have.
  void Flush();
  // The gradients in rounds of the bucket with the fewest, and of the bucket with the most.
  std::pair<uint64_t, uint64_t> Contributed() const;

  // --- saving and restoring ---
  // The lane as it is at this moment goes to `give`, chunk by chunk: what was applied at once, the
  // parameters in SaveSome and before they change. REQUIRES: no save is under way.
  // `reuse` may offer the memory of chunks that are done with.
  using GiveChunk = std::function<void(checkpoint::Chunk)>;
  void BeginSave(
      GiveChunk give, RecordCollector::Reuse reuse = [] { return wire::Buffer(); });
  bool saving() const { return saving_ != nullptr; }
  // Saves until `is_enough` says so, which is asked now and then. False: all was given, and the
  // save has ended.
  bool SaveSome(const std::function<bool()>& is_enough);
  // Bytes of blocks that are not saved yet: what a push may have to copy at once, at most.
  size_t BlockBytesToSave() const;
  // Gives the save up.
  void EndSave();
  // Takes what a part has of this lane's buckets; DataLoss tells what is wrong with it. A part
  // that has none of them is not read further than its head. After the last one, EndRestore().
  // REQUIRES: nothing was asked of the lane yet.
  Status Restore(checkpoint::PartReader& part, bool with_marks = true);
  // After the last part, if there was any. DataLoss: there was, and some buckets of the lane are in
  // none of them, or in two.
  Status EndRestore(bool had_parts = true);

  struct BucketRange {
    size_t first = 0;
    size_t end = 0;
  };
  // The buckets of the part with that head. DataLoss: it names none.
  static Result<BucketRange> RangeOf(const checkpoint::Chunk& head);
  // A part that is taken chunk by chunk: its chunks mean what its head says.
  struct PartRestore {
    bool with_marks = true;
    Names names = {};
    BucketRange range = {};
    bool has_head = false;
  };
  // Takes the next chunk of the part at `path`. REQUIRES: the part has buckets of this lane.
  Status Take(const checkpoint::Chunk& chunk, PartRestore& part, std::string_view path);

  // An empty lane of the same buckets, to be restored and adopted.
  std::unique_ptr<Lane> MakeEmpty() const;
  // Takes over all that the other has. Names that were declared before mean nothing any more, and
  // the generation rises. REQUIRES: MakeEmpty() made it, and no save is or was under way since.
  void Adopt(Lane&& other);
  uint64_t generation() const { return generation_; }
  // Whether a shard was opened or a batch applied since the lane was made or restored. Rows that
  // pulls made and values that were put are not trained.
  bool trained() const { return trained_; }
  wire::Bucket first() const { return first_; }
  size_t end() const { return end_; }

  Watermarks& watermarks() { return watermarks_; }
  // Pushes that it has applied.
  uint64_t version() const { return version_; }
  // Batches that changed nothing, as their gradients were no numbers.
  uint64_t refused() const { return refused_; }
  size_t rows() const;
  size_t bytes() const;
  // Rows that bounds of tables made it forget.
  uint64_t evicted() const;

 private:
  struct TablePush {
    Table* table = nullptr;
    std::span<const int64_t> ids;
    const float* gradients = nullptr;
    float learning_rate = 0;
  };
  struct TensorPush {
    TensorShare* tensor = nullptr;
    const float* gradients = nullptr;
    float learning_rate = 0;
  };

  // A save that is under way.
  struct Saving {
    GiveChunk give;
    RecordCollector::Reuse reuse;
    // One for the rows of each table, and one for its candidates where it has some.
    std::vector<std::unique_ptr<RecordCollector>> collectors;
    std::vector<Table*> tables;
    std::vector<TensorShare*> tensors;
    size_t tables_done = 0;
    size_t tensors_done = 0;
  };
  double ShareOfIds() const;
  Status CheckBounds(const Declaration& declaration) const;
  Status CheckDeclaration(const Declaration& declaration) const;
  // As Declare, with any bounds.
  Result<Names> Add(const Declaration& declaration);
  // Makes room for all rows that the pushes may make.
  Status ReserveRows(const std::vector<TablePush>& pushes);

  Status RestoreHead(const checkpoint::Chunk& chunk, PartRestore& part);
  Status RestoreMarks(const checkpoint::Chunk& chunk);
  Status RestoreSteps(const checkpoint::Chunk& chunk, const PartRestore& part);
  Status RestoreRows(const checkpoint::Chunk& chunk, const PartRestore& part);
  Status RestoreCandidates(const checkpoint::Chunk& chunk, const PartRestore& part);
  Status RestoreBlock(const checkpoint::Chunk& chunk, const PartRestore& part);
  Status RestoreChunk(const checkpoint::Chunk& chunk, PartRestore& part);
  RecordCollector* MakeCollector(checkpoint::ChunkKind kind, uint32_t index, size_t record_bytes);
  bool Owns(wire::Bucket bucket) const { return bucket >= first_ && bucket < end_; }
  void CheckSteps();

  bool InRounds() const { return consistency_.gradients > 0; }
  // Whether its parameters were too old.
  bool IsStale(const wire::Push& push) const;
  // What of the learning rate is left for parameters of that age.
  float ShareOfRate(const wire::Push& push) const;
  void Contribute(const TablePush& push, const Watermarks::BatchCheck& verdict);
  // Makes steps of the rounds of buckets that have at least so many gradients.
  void CloseRounds(uint32_t gradients);
  void SaveRound();
  Status RestoreRound(const checkpoint::Chunk& chunk, const PartRestore& part);
  Status RestoreRoundRows(const checkpoint::Chunk& chunk, const PartRestore& part);
  Status RestoreRoundBlock(const checkpoint::Chunk& chunk, const PartRestore& part);

  void CountSteps(const Watermarks::BatchCheck& verdict);
  void Apply(const TablePush& push, const Watermarks::BatchCheck& verdict);
  void Apply(const TensorPush& push, const Watermarks::BatchCheck& verdict);
  // Whether the bucket takes part in a push.
  bool Takes(const Watermarks::BatchCheck& verdict, wire::Bucket bucket) const {
    return !verdict.lacked.has_value() || (*verdict.lacked)[bucket - first_];
  }

  const wire::Placement placement_;
  const size_t place_;
  const wire::Bucket first_;
  const size_t end_;
  std::map<std::string, std::unique_ptr<Table>, std::less<>> tables_;
  std::map<std::string, std::unique_ptr<TensorShare>, std::less<>> tensors_;
  Watermarks watermarks_;
  std::optional<Consistency> declared_;  // as it was first
  Consistency consistency_;
  Round round_;
  // Pushes (or rounds) that changed each bucket, counted over the job.
  std::array<uint64_t, wire::kBuckets> steps_{};
  bool steps_agree_ = true;
  uint64_t most_steps_ = 0;            // of a bucket: the clock by which rows grow old
  std::vector<BucketRange> restored_;  // of the parts so far
  bool trained_ = false;
  uint64_t generation_ = 1;
  uint64_t version_ = 0;
  uint64_t refused_ = 0;
  SaveNumber save_ = 0;     // the last that began
  int saves_given_up_ = 0;  // since one was done
  std::unique_ptr<Saving> saving_;
};

}  // namespace edl::ps
