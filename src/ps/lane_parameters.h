#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "ps/bucket_range.h"
#include "ps/declaration.h"
#include "ps/record_collector.h"
#include "ps/table.h"
#include "ps/tensor_blocks.h"

namespace edl::ps {

// The tables and tensors of a declaration, in its order. Messages of a connection refer to them by
// their index in the declaration of that connection.
struct DeclaredParameters {
  std::vector<Table*> tables;
  std::vector<TensorBlocks*> tensors;
};

// The tables and tensor blocks of one lane, by name, and the declared consistency. Tables and
// tensors are only added, so pointers to them stay valid. Confined to the lane's thread.
class LaneParameters {
 public:
  template <typename Parameter>
  using ByName = std::map<std::string, std::unique_ptr<Parameter>, std::less<>>;

  explicit LaneParameters(const BucketRange& buckets) : buckets_(buckets) {}

  // InvalidArgument: an optimizer setting is invalid, or the memory bound of a table is too small
  // for this lane.
  Status CheckBounds(const Declaration& declaration) const;
  // InvalidArgument: an optimizer setting is invalid. FailedPrecondition: a name, or the
  // consistency, was declared differently before. ResourceExhausted: a limit is exceeded.
  Status Check(const Declaration& declaration) const;
  // Creates the tables and tensors that do not exist yet. REQUIRES: Check() returned Ok.
  DeclaredParameters Add(const Declaration& declaration);

  const Consistency& consistency() const { return consistency_; }
  // Whether pushes are collected into synchronous rounds.
  bool in_rounds() const { return consistency_.gradients > 0; }
  // Lets the next declaration choose another consistency. Call it after a restore: workers may
  // differ in it from the job that saved.
  void ReopenConsistency() { declared_ = false; }

  const ByName<Table>& tables() const { return tables_; }
  const ByName<TensorBlocks>& tensors() const { return tensors_; }
  size_t rows() const;
  // Memory of all tables and tensors.
  size_t bytes() const;
  // Rows that were evicted because of the bounds of tables.
  uint64_t evicted() const;

  // --- the number of the running save, see SaveNumber ---
  // Returns the number of the save that starts now. REQUIRES: no save is running.
  SaveNumber BeginSave();
  enum class SaveEnd { kComplete, kCancelled };
  void EndSave(SaveEnd end);
  bool saving() const { return saving_; }

 private:
  double ShareOfIds() const;

  BucketRange buckets_;
  ByName<Table> tables_;
  ByName<TensorBlocks> tensors_;
  Consistency consistency_;
  bool declared_ = false;    // the consistency cannot change any more
  SaveNumber save_ = 0;      // of the last save that began
  int cancelled_saves_ = 0;  // since the last complete one
  bool saving_ = false;
};

}  // namespace edl::ps
