#include "base/range_set.h"

#include <iterator>

namespace edl {

bool RangeSet::Add(uint64_t number, std::vector<uint64_t>* touched) {
  auto next = ranges_.upper_bound(number);
  auto before = next == ranges_.begin() ? ranges_.end() : std::prev(next);
  if (before != ranges_.end() && number <= before->second.last) return false;

  Range merged{number, number};
  if (next != ranges_.end() && next->second.first == number + 1) {
    merged.last = next->second.last;
    if (touched != nullptr) touched->push_back(next->second.first);
    ranges_.erase(next);
  }
  if (before != ranges_.end() && before->second.last + 1 == number) {
    merged.first = before->second.first;
  }
  ranges_[merged.first] = merged;
  if (touched != nullptr) touched->push_back(merged.first);
  ++count_;
  return true;
}

void RangeSet::AddRange(Range range) {
  auto next = ranges_.upper_bound(range.first);
  if (next != ranges_.begin()) {
    auto before = std::prev(next);
    if (before->second.last + 1 >= range.first) {
      if (before->second.last >= range.last) return;
      range.first = before->second.first;
      count_ -= before->second.last - before->second.first + 1;
      ranges_.erase(before);
    }
  }
  while (next != ranges_.end() && next->second.first <= range.last + 1) {
    if (next->second.last > range.last) range.last = next->second.last;
    count_ -= next->second.last - next->second.first + 1;
    next = ranges_.erase(next);
  }
  ranges_[range.first] = range;
  count_ += range.last - range.first + 1;
}

RangeSet RangeSet::Minus(const RangeSet& other) const {
  RangeSet left;
  for (const auto& [first, range] : ranges_) {
    uint64_t from = range.first;
    while (from <= range.last) {
      const uint64_t begin = other.NextMissing(from);
      if (begin > range.last) break;
      const auto next = other.ranges_.upper_bound(begin);
      const bool ends = next != other.ranges_.end() && next->second.first <= range.last;
      const uint64_t end = ends ? next->second.first - 1 : range.last;
      left.AddRange({begin, end});
      if (end == range.last) break;
      from = end + 1;
    }
  }
  return left;
}

bool RangeSet::Contains(uint64_t number) const { return NextMissing(number) != number; }

uint64_t RangeSet::NextMissing(uint64_t from) const {
  auto next = ranges_.upper_bound(from);
  if (next == ranges_.begin()) return from;
  const Range& range = std::prev(next)->second;
  return from <= range.last ? range.last + 1 : from;
}

const RangeSet::Range* RangeSet::StartingAt(uint64_t first) const {
  auto found = ranges_.find(first);
  return found == ranges_.end() ? nullptr : &found->second;
}

std::vector<RangeSet::Range> RangeSet::ranges() const {
  std::vector<Range> all;
  all.reserve(ranges_.size());
  for (const auto& [first, range] : ranges_) all.push_back(range);
  return all;
}

}  // namespace edl
