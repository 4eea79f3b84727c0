#include "ps/candidates.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "ps/table.h"
#include "wire/placement.h"

namespace edl::ps {
namespace {

bool Count(Candidates& candidates, int64_t id) { return candidates.Count(id, wire::HashOf(id)); }

TEST(Candidates, BecomeRowsAtTheConfiguredPush) {
  Candidates candidates(3, 0, 0);
  EXPECT_FALSE(Count(candidates, 7));
  EXPECT_FALSE(Count(candidates, 8));
  EXPECT_FALSE(Count(candidates, 7));
  EXPECT_TRUE(Count(candidates, 7));
  EXPECT_EQ(candidates.size(), 1U);
  EXPECT_FALSE(Count(candidates, 7)) << "it was forgotten, so it is counted from 0 again";
}

TEST(Candidates, StayWithinTheirLimit) {
  Candidates candidates(1000, 100, 0);
  for (int pushes = 0; pushes < 20; ++pushes) {
    for (int64_t id = 0; id < 20; ++id) Count(candidates, id);
    for (int64_t id = 0; id < 50; ++id) Count(candidates, 1000 + pushes * 50 + id);
    EXPECT_LE(candidates.size(), 100U);
  }
}

TEST(Candidates, AreSavedAsTheyWereAtTheStart) {
  Candidates candidates(10, 0, 0);
  for (int64_t id = 0; id < 1000; ++id) {
    for (int64_t push = 0; push < id % 4 + 1; ++push) Count(candidates, id);
  }
  std::vector<std::byte> records;
  RecordCollector collector(
      Candidates::kRecordBytes,
      [&](const wire::Buffer& chunk, size_t) {
        records.insert(records.end(), chunk.bytes().begin(), chunk.bytes().end());
      },
      [] { return wire::Buffer(); });
  candidates.BeginSave(1, &collector);
  candidates.SaveSome([] { return true; });
  for (int64_t id = 900; id < 1100; ++id) {
    for (int push = 0; push < 9; ++push) Count(candidates, id);
  }
  while (candidates.SaveSome([] { return false; })) {
  }
  collector.End();
  candidates.EndSave();

  ASSERT_EQ(records.size(), 1000 * Candidates::kRecordBytes);
  Candidates restored(10, 0, 0);
  for (size_t at = 0; at < records.size(); at += Candidates::kRecordBytes) {
    ASSERT_OK(restored.Restore(&records[at]));
  }
  // An id that was pushed n times lacks 10 - n.
  for (const int64_t id : {0, 1, 2, 3, 901, 999}) {
    int more = 1;
    while (!Count(restored, id)) ++more;
    EXPECT_EQ(more, 10 - (id % 4 + 1)) << id;
  }
}

TEST(Candidates, ArePulledAsInitialValues) {
  Table table({.name = "t", .dim = 2, .initializer = Initializer::Constant(5), .admit_after = 3});
  const std::vector<int64_t> ids = {1, 2};
  const std::vector<float> gradients = {-1, -1, -1, -1};
  std::vector<float> rows(4);
  const auto push = [&](std::span<const int64_t> some) {
    table.Push(some, gradients.data(), {.learning_rate = 1}, 0);
  };
  table.Pull(ids, Table::Unknown::kMake, rows.data());
  EXPECT_EQ(table.rows(), 0U);
  EXPECT_EQ(rows, std::vector<float>(4, 5));
  push(ids);
  push({ids.data(), 1});
  EXPECT_EQ(table.rows(), 0U);
  push(ids);  // the third of 1, the second of 2

  table.Pull(ids, Table::Unknown::kMake, rows.data());
  EXPECT_EQ(rows, (std::vector<float>{6, 6, 5, 5}));
  EXPECT_EQ(table.rows(), 1U);
  push({ids.data() + 1, 1});
  table.Pull(ids, Table::Unknown::kMake, rows.data());
  EXPECT_EQ(rows, (std::vector<float>{6, 6, 6, 6}));
}

}  // namespace
}  // namespace edl::ps
