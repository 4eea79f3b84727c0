#include "ps/row_index.h"

#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "wire/placement.h"

namespace edl::ps {
namespace {

// An index and what it should hold, where row r is that of id ids[r].
class Checked {
 public:
  void Insert(int64_t id) {
    const auto row = static_cast<uint32_t>(ids_.size());
    ids_.push_back(id);
    rows_[id] = row;
    ASSERT_OK(index_.Reserve(1));
    index_.Insert(wire::HashOf(id), row);
  }
  void Remove(int64_t id) {
    index_.Remove(wire::HashOf(id), rows_.at(id));
    rows_.erase(id);
  }
  std::optional<uint32_t> Find(int64_t id) const {
    return index_.Find(wire::HashOf(id), [&](uint32_t row) { return ids_[row] == id; });
  }
  void Check() const {
    ASSERT_EQ(index_.size(), rows_.size());
    for (const auto& [id, row] : rows_) ASSERT_EQ(Find(id), row) << id;
  }
  const std::map<int64_t, uint32_t>& rows() const { return rows_; }
  size_t bytes() const { return index_.bytes(); }

 private:
  RowIndex index_;
  std::vector<int64_t> ids_;
  std::map<int64_t, uint32_t> rows_;
};

TEST(RowIndex, FindsWhatWasInsertedWhileItGrows) {
  Checked checked;
  for (int64_t id = 0; id < 20'000; ++id) {
    checked.Insert(id * 1'000'003 - 5'000'000'000);
    // Most often in the middle of a growth: sizes around a limit, and any other.
    if (id % 1777 == 0 || (id > 715 && id < 760)) checked.Check();
  }
  checked.Check();
  EXPECT_EQ(checked.Find(7), std::nullopt);
}

TEST(RowIndex, DoesNotFindRemovedRows) {
  std::mt19937_64 random(7);
  Checked checked;
  for (int step = 0; step < 30'000; ++step) {
    const auto id = static_cast<int64_t>(random() % 3000);
    if (checked.rows().contains(id)) {
      checked.Remove(id);
      ASSERT_EQ(checked.Find(id), std::nullopt);
    } else {
      checked.Insert(id);
    }
    if (step % 977 == 0) checked.Check();
  }
  checked.Check();
  // An index of 3,000 ids must not grow forever.
  EXPECT_LE(checked.bytes(), size_t{8} << 20);
}

TEST(RowIndex, DistinguishesIdsWithTheSamePlace) {
  // Ids whose hashes share all bits that a small table looks at.
  std::vector<int64_t> alike;
  const uint64_t wanted = (wire::HashOf(1) >> 30) & 0x3FF;
  for (int64_t id = 1; alike.size() < 50; ++id) {
    if (((wire::HashOf(id) >> 30) & 0x3FF) == wanted) alike.push_back(id);
  }
  Checked checked;
  for (const int64_t id : alike) checked.Insert(id);
  checked.Check();
  checked.Remove(alike[10]);
  checked.Check();
}

}  // namespace
}  // namespace edl::ps
