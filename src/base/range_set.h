#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace edl {

// A set of numbers kept as disjoint, non-adjacent ranges [first, last], so that a long run costs
// as much as a single number. Confined to whoever owns it.
class RangeSet {
 public:
  struct Range {
    uint64_t first = 0;
    uint64_t last = 0;  // inclusive
    bool operator==(const Range&) const = default;
  };

  // False if `number` was in already. `touched` gets the first number of every range that was
  // made, changed or swallowed, for a caller that mirrors the ranges elsewhere.
  bool Add(uint64_t number, std::vector<uint64_t>* touched = nullptr);
  void AddRange(Range range);
  // What is in this set and not in `other`.
  RangeSet Minus(const RangeSet& other) const;

  bool Contains(uint64_t number) const;
  // The smallest number at or above `from` that is not in the set.
  uint64_t NextMissing(uint64_t from) const;
  uint64_t count() const { return count_; }
  bool empty() const { return ranges_.empty(); }
  // Null if no range starts there.
  const Range* StartingAt(uint64_t first) const;
  std::vector<Range> ranges() const;
  bool operator==(const RangeSet& other) const { return ranges_ == other.ranges_; }

 private:
  std::map<uint64_t, Range> ranges_;  // by first
  uint64_t count_ = 0;
};

}  // namespace edl
