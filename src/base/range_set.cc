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
