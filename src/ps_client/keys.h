#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "wire/placement.h"

namespace edl::ps_client {

// The ids of a batch for one table, each once, in the order in which they travel: those of lane 0,
// then those of lane 1. Memory is kept from one batch to the next. Confined.
class Keys {
 public:
  explicit Keys(const wire::Placement& placement);

  // Takes the ids of a batch. REQUIRES: at most kMostIds.
  static constexpr size_t kMostIds = INT32_MAX / 2 - 1;
  void Assign(std::span<const int64_t> ids);

  // Scatters: writes to `spread` the row of each original id, in the order of the ids.
  void Spread(const float* rows, size_t dim, float* spread) const;
  // Gathers: sums the gradients of equal ids, in the order in which they were given. Writes one
  // gradient for each of ids().
  void Sum(const float* gradients, size_t dim, float* sums) const;

  // Each id once.
  std::span<const int64_t> ids() const { return ids_; }
  // For each id that was given its place in ids(), and so that of its row.
  std::span<const int32_t> places() const { return places_; }
  // Those of one lane are [BeginOf(lane), BeginOf(lane + 1)).
  size_t BeginOf(size_t lane) const { return begins_[lane]; }
  size_t SizeOf(size_t lane) const { return begins_[lane + 1] - begins_[lane]; }
  const wire::Placement& placement() const { return placement_; }

 private:
  wire::Placement placement_;
  std::vector<int64_t> ids_;
  std::vector<int32_t> places_;
  std::vector<size_t> begins_;
  // Scratch: the place + 1 of the first id with a hash, and each distinct id with its lane.
  std::vector<int32_t> index_;
  std::vector<int64_t> distinct_;
  std::vector<uint16_t> lanes_;
  std::vector<int32_t> moved_to_;
};

}  // namespace edl::ps_client
