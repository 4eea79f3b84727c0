#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace edl {

// A set of numbers stored as disjoint, non-adjacent ranges [first, last], so that a long run of
// numbers needs as much memory as a single one. Confined.
class RangeSet {
 public:
  struct Range {
    uint64_t first = 0;
    uint64_t last = 0;  // inclusive
    bool operator==(const Range&) const = default;
  };

  // Returns false if the set contained `number` before. Adds the first number of every range that
  // was created, changed or merged to `touched`, for a caller that mirrors the ranges elsewhere.
  bool Add(uint64_t number, std::vector<uint64_t>* touched = nullptr);
  void AddRange(Range range);
  // The numbers that are in this set and not in `other`.
  RangeSet Minus(const RangeSet& other) const;

  bool Contains(uint64_t number) const;
  // The smallest number at or above `from` that is not in the set.
  uint64_t NextMissing(uint64_t from) const;
  uint64_t count() const { return count_; }
  bool empty() const { return ranges_.empty(); }
  // The range that starts with `first`; null if there is none.
  const Range* StartingAt(uint64_t first) const;
  std::vector<Range> ranges() const;
  bool operator==(const RangeSet& other) const { return ranges_ == other.ranges_; }

 private:
  std::map<uint64_t, Range> ranges_;  // by first
  uint64_t count_ = 0;
};

}  // namespace edl
