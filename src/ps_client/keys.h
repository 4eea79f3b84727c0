#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "wire/placement.h"

namespace edl::ps_client {

// The distinct ids of a batch for one table, sorted by lane: the ids of lane 0, then those of lane
// 1, and so on. Reuses its memory for the next batch. Confined.
class Keys {
 public:
  explicit Keys(const wire::Placement& placement);

  // Sets the ids of a batch. REQUIRES: at most kMostIds.
  static constexpr size_t kMostIds = INT32_MAX / 2 - 1;
  void Assign(std::span<const int64_t> ids);

  // Writes the row of each id that was passed to Assign to `spread`, in the order of Assign. `rows`
  // has a row for each of ids().
  void Spread(const float* rows, size_t dim, float* spread) const;
  // Sums the gradients of equal ids. `gradients` has one for each id that was passed to Assign;
  // `sums` gets one for each of ids().
  void Sum(const float* gradients, size_t dim, float* sums) const;

  // The distinct ids.
  std::span<const int64_t> ids() const { return ids_; }
  // For each id that was passed to Assign, its index in ids().
  std::span<const int32_t> places() const { return places_; }
  // The ids of a lane are ids()[BeginOf(lane)] and the SizeOf(lane) - 1 ids after it.
  size_t BeginOf(size_t lane) const { return begins_[lane]; }
  size_t SizeOf(size_t lane) const { return begins_[lane + 1] - begins_[lane]; }
  const wire::Placement& placement() const { return placement_; }

 private:
  wire::Placement placement_;
  std::vector<int64_t> ids_;
  std::vector<int32_t> places_;
  std::vector<size_t> begins_;
  // Scratch memory of Assign: a hash table of index + 1 into distinct_, the distinct ids in the
  // order of their first use, their lanes, and their indices in ids_.
  std::vector<int32_t> index_;
  std::vector<int64_t> distinct_;
  std::vector<uint16_t> lanes_;
  std::vector<int32_t> moved_to_;
};

}  // namespace edl::ps_client
