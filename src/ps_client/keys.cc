#include "ps_client/keys.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/check.h"

namespace edl::ps_client {
namespace {

// This many ids are looked up together, so that their cache misses overlap.
constexpr size_t kTogether = 32;
// The hash table uses these bits of the hash; buckets use the lowest ones.
constexpr int kShift = 32;

}  // namespace

Keys::Keys(const wire::Placement& placement)
    : placement_(placement), begins_(placement.lanes() + 1) {}

void Keys::Assign(std::span<const int64_t> ids) {
  CHECK(ids.size() <= kMostIds, "{} ids in a batch are too many", ids.size());
  const uint64_t mask = std::bit_ceil(ids.size() * 2 + 1) - 1;
  index_.assign(mask + 1, 0);
  distinct_.clear();
  lanes_.clear();
  places_.resize(ids.size());
  std::fill(begins_.begin(), begins_.end(), 0);

  std::array<uint64_t, kTogether> hashes;  // NOLINT: written before it is read
  for (size_t begin = 0; begin < ids.size(); begin += kTogether) {
    const size_t count = std::min(kTogether, ids.size() - begin);
    for (size_t i = 0; i < count; ++i) {
      hashes[i] = wire::HashOf(ids[begin + i]);
      __builtin_prefetch(&index_[hashes[i] >> kShift & mask], 1);
    }
    for (size_t i = 0; i < count; ++i) {
      const int64_t id = ids[begin + i];
      uint64_t at = hashes[i] >> kShift & mask;
      while (index_[at] != 0 && distinct_[static_cast<size_t>(index_[at] - 1)] != id) {
        at = (at + 1) & mask;
      }
      if (index_[at] == 0) {
        distinct_.push_back(id);
        const size_t lane = placement_.LaneOf(wire::BucketOfHash(hashes[i])).value();
        lanes_.push_back(static_cast<uint16_t>(lane));
        ++begins_[lane + 1];
        index_[at] = static_cast<int32_t>(distinct_.size());
      }
      places_[begin + i] = index_[at] - 1;
    }
  }

  for (size_t lane = 0; lane < placement_.lanes(); ++lane) begins_[lane + 1] += begins_[lane];
  std::vector<size_t> next(begins_.begin(), begins_.end() - 1);
  ids_.resize(distinct_.size());
  moved_to_.resize(distinct_.size());
  for (size_t i = 0; i < distinct_.size(); ++i) {
    const size_t place = next[lanes_[i]]++;
    ids_[place] = distinct_[i];
    moved_to_[i] = static_cast<int32_t>(place);
  }
  for (int32_t& place : places_) place = moved_to_[static_cast<size_t>(place)];
}

void Keys::Spread(const float* rows, size_t dim, float* spread) const {
  for (size_t i = 0; i < places_.size(); ++i) {
    const auto place = static_cast<size_t>(places_[i]);
    std::copy_n(rows + place * dim, dim, spread + i * dim);
  }
}

void Keys::Sum(const float* gradients, size_t dim, float* sums) const {
  const bool has_each_once = ids_.size() == places_.size();
  if (!has_each_once) std::fill_n(sums, ids_.size() * dim, 0.0F);
  for (size_t i = 0; i < places_.size(); ++i) {
    const float* const from = gradients + i * dim;
    float* const to = sums + static_cast<size_t>(places_[i]) * dim;
    if (has_each_once) {
      std::copy_n(from, dim, to);
    } else {
      for (size_t k = 0; k < dim; ++k) to[k] += from[k];
    }
  }
}

}  // namespace edl::ps_client
