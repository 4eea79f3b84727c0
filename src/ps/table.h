#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "ps/declaration.h"
#include "ps/optimizer/optimizer.h"
#include "ps/row_index.h"
#include "ps/slab.h"

namespace edl::ps {

// One lane's share of a table: rows by id, each with its slots, made when they are first asked for.
// Confined to the lane.
class Table {
 public:
  // What a pull does about an id that has no row: makes one, or only tells what it would be.
  enum class Unknown { kMake, kTell };

  // REQUIRES: spec.dim > 0, and MakeOptimizer accepts spec.optimizer.
  explicit Table(TableSpec spec);

  // Writes the weights of `ids`, dim values each, to `out`.
  void Pull(std::span<const int64_t> ids, Unknown unknown, float* out);
  // Changes the rows of `ids` by their gradients, dim values each. REQUIRES: no id is there twice.
  void Push(std::span<const int64_t> ids, const float* gradients, const Step& step);
  // Forgets a row; it is made anew when it is asked for. False: there is none.
  bool Remove(int64_t id);

  const TableSpec& spec() const { return spec_; }
  const Optimizer& optimizer() const { return *optimizer_; }
  size_t rows() const { return index_.size(); }
  // Memory of rows, also of removed ones, and of the index.
  size_t bytes() const { return slabs_.bytes() + index_.bytes(); }
  size_t row_bytes() const { return slabs_.block_bytes(); }

 private:
  struct Header {
    int64_t id = 0;
    uint64_t reserved = 0;  // for uses, age and the number of the last save
  };

  // So many ids are looked up together: what memory has to bring for one comes beside the others'.
  static constexpr size_t kTogether = 64;
  struct Located {
    std::array<uint64_t, kTogether> hashes;
    std::array<uint32_t, kTogether> rows;  // kNone: there is none
  };

  Header& HeaderOf(uint32_t row) const { return *reinterpret_cast<Header*>(slabs_.At(row)); }
  float* WeightsOf(uint32_t row) const {
    return reinterpret_cast<float*>(slabs_.At(row) + sizeof(Header));
  }
  void PrefetchRow(uint32_t row, size_t bytes) const;
  std::optional<uint32_t> Find(int64_t id, uint64_t hash) const;
  // Finds the rows of at most kTogether ids, and brings so many bytes of each to the processor.
  void Locate(std::span<const int64_t> ids, size_t bytes, Located& located) const;
  uint32_t FindOrMake(int64_t id, uint64_t hash);
  uint32_t Make(int64_t id, uint64_t hash);

  const TableSpec spec_;
  const std::unique_ptr<Optimizer> optimizer_;
  Slabs slabs_;
  RowIndex index_;
};

}  // namespace edl::ps
