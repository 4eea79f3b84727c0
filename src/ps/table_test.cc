#include "ps/table.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <unordered_map>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace edl::ps {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using Unknown = Table::Unknown;

TableSpec Spec(size_t dim, Initializer initializer, OptimizerOptions optimizer = {}) {
  return {.name = "t",
          .dim = dim,
          .initializer = initializer,
          .optimizer = std::move(optimizer),
          .seed = SeedOf(1, "t")};
}

std::vector<float> PullOf(Table& table, const std::vector<int64_t>& ids,
                          Unknown unknown = Unknown::kMake) {
  std::vector<float> out(ids.size() * table.spec().dim);
  table.Pull(ids, unknown, out.data());
  return out;
}

TEST(Table, MakesRowsWhenTheyAreFirstPulled) {
  Table table(Spec(3, Initializer::Constant(2)));
  EXPECT_EQ(table.rows(), 0U);
  EXPECT_THAT(PullOf(table, {5, -5, INT64_MIN, INT64_MAX, 0}), Each(2.0F));
  EXPECT_EQ(table.rows(), 5U);
  PullOf(table, {5, 0});
  EXPECT_EQ(table.rows(), 5U);
}

TEST(Table, ReturnsInitialValuesWithoutCreatingARow) {
  Table table(Spec(4, Initializer::Uniform(-1, 1)));
  const std::vector<float> told = PullOf(table, {1, 2, 3}, Unknown::kTell);
  EXPECT_EQ(table.rows(), 0U);
  EXPECT_EQ(PullOf(table, {1, 2, 3}), told);
  EXPECT_EQ(table.rows(), 3U);
}

TEST(Table, MakesOneRowOfAnIdThatIsPulledTwiceAtOnce) {
  Table table(Spec(1, Initializer::Constant(0)));
  PullOf(table, {7, 8, 7});
  EXPECT_EQ(table.rows(), 2U);
}

TEST(Table, RowsAreTheSameInAnyOrder) {
  Table one(Spec(5, Initializer::Normal(0, 1), {.name = "Adam"}));
  Table other(Spec(5, Initializer::Normal(0, 1), {.name = "Adam"}));
  PullOf(other, {9, 4, 100});
  PullOf(other, {1});
  EXPECT_EQ(PullOf(one, {1, 4, 9, 100}), PullOf(other, {1, 4, 9, 100}));
}

TEST(Table, ChangesOnlyRowsThatArePushed) {
  Table table(Spec(2, Initializer::Constant(1)));
  PullOf(table, {1, 2});
  const std::vector<int64_t> ids = {2, 3};  // 3 is made by the push
  const std::vector<float> gradients = {1, 2, 3, 4};
  table.Push(ids, gradients.data(), {.learning_rate = 0.5F}, 0);
  EXPECT_THAT(PullOf(table, {1, 2, 3}), ElementsAre(1, 1, 0.5F, 0, -0.5F, -1));
}

TEST(Table, ForgetsARemovedRowWithItsSlots) {
  Table table(Spec(1, Initializer::Constant(1), {.name = "Adagrad"}));
  const std::vector<int64_t> ids = {1};
  const float gradient = 1;
  table.Push(ids, &gradient, {.learning_rate = 1}, 0);
  const std::vector<float> once = PullOf(table, {1});
  EXPECT_TRUE(table.Remove(1));
  EXPECT_FALSE(table.Remove(1));
  EXPECT_EQ(table.rows(), 0U);
  EXPECT_THAT(PullOf(table, {1}), ElementsAre(1));
  table.Push(ids, &gradient, {.learning_rate = 1}, 0);
  EXPECT_EQ(PullOf(table, {1}), once) << "the slot was not initialized again";
}

std::vector<int64_t> Range(int64_t begin, int64_t end) {
  std::vector<int64_t> ids(static_cast<size_t>(end - begin));
  std::iota(ids.begin(), ids.end(), begin);
  return ids;
}

void PushAll(Table& table, const std::vector<int64_t>& ids, int64_t number) {
  const std::vector<float> gradients(ids.size() * table.spec().dim, -1);
  table.Push(ids, gradients.data(), {.learning_rate = 1, .number = number},
             static_cast<uint32_t>(number));
}

TEST(Table, EvictsTheLeastUsedRowsAboveItsBound) {
  TableSpec spec = Spec(16, Initializer::Constant(0));
  spec.most_bytes = 5'000'000;
  Table table(spec);
  const std::vector<int64_t> hot = Range(0, 1000);
  for (int64_t number = 1; number <= 300; ++number) {
    if (number % 3 == 0) PushAll(table, hot, number);
    PushAll(table, Range(number * 500 + 1000, number * 500 + 1500), number);
    ASSERT_LE(table.rows() * (table.row_bytes() + 8), spec.most_bytes);
  }
  EXPECT_GT(table.evicted(), 90'000U);
  EXPECT_LE(table.bytes(), 5'000'000U) << "the memory of forgotten rows was not used again";
  // Rows that are used often are kept; the others were evicted and are created again.
  const std::vector<float> rows = PullOf(table, hot, Unknown::kTell);
  EXPECT_GT(std::ranges::count(rows, 100.0F), 990 * 16);
}

TEST(Table, StaysWithinItsBoundOnAnyNumberOfLanesAndWithAnyDimension) {
  for (const size_t dim : {1, 16, 100, 1000}) {
    for (const int lanes : {1, 8, 64}) {
      TableSpec spec = Spec(dim, Initializer::Constant(0), {.name = "Adam"});
      const double share = 1.0 / lanes;
      spec.most_bytes = std::max<size_t>(Table::LeastBytes(spec, share), size_t{16} << 20);
      Table table(spec, 0, share);
      for (int64_t number = 1; number <= 40; ++number) {
        PushAll(table, Range(number * 300, number * 300 + 300), number);
      }
      EXPECT_LE(static_cast<double>(table.bytes()), static_cast<double>(spec.most_bytes) * share)
          << dim << " values, " << lanes << " lanes";
      EXPECT_GE(table.rows(), 128U);
    }
  }
}

TEST(Table, UsesMostOfItsBound) {
  for (const int lanes : {8, 16}) {
    TableSpec spec = Spec(16, Initializer::Constant(0), {.name = "Adagrad"});
    spec.most_bytes = size_t{64} << 20;
    Table table(spec, 0, 1.0 / lanes);
    for (int64_t number = 1; number <= 200; ++number) {
      PushAll(table, Range(number * 500, number * 500 + 500), number);
    }
    EXPECT_GE(table.rows() * static_cast<size_t>(lanes), 200'000U) << lanes << " lanes";
  }
}

TEST(Table, TakesLittleMemoryForFewRows) {
  Table table(Spec(16, Initializer::Constant(0), {.name = "Adagrad"}));
  EXPECT_EQ(table.bytes(), 0U);
  PullOf(table, Range(0, 125));
  EXPECT_LE(table.bytes(), 3U * 125 * 144);
}

TEST(Table, EvictsNoRowForAPullThatCreatesNone) {
  TableSpec spec = Spec(1, Initializer::Constant(0));
  spec.most_bytes = Table::LeastBytes(spec, 1);
  Table table(spec);
  PushAll(table, Range(0, 10'000), 1);
  const uint64_t evicted = table.evicted();
  PullOf(table, Range(20'000, 21'000), Unknown::kTell);
  EXPECT_EQ(table.evicted(), evicted);
}

TEST(Table, EvictsRowsThatWereNotChangedForLong) {
  TableSpec spec = Spec(1, Initializer::Constant(0));
  spec.evict_after = 10;
  Table table(spec);
  PushAll(table, Range(0, 1000), 1);
  for (int64_t number = 2; number <= 11; ++number) PushAll(table, Range(0, 100), number);
  EXPECT_EQ(table.rows(), 1000U);
  for (int64_t number = 12; number <= 30; ++number) PushAll(table, Range(0, 100), number);
  EXPECT_EQ(table.rows(), 100U);
  EXPECT_EQ(table.evicted(), 900U);
  EXPECT_THAT(PullOf(table, {5}), ElementsAre(30));
}

TEST(Table, SavesARowBeforeItIsEvicted) {
  TableSpec spec = Spec(1, Initializer::Constant(0));
  spec.evict_after = 1;
  Table table(spec);
  PushAll(table, Range(0, 10), 1);
  std::set<int64_t> saved;
  RecordCollector collector(
      table.row_bytes(),
      [&](const wire::Buffer& chunk, size_t records) {
        for (size_t i = 0; i < records; ++i) {
          saved.insert(Table::IdOfRecord(chunk.data() + i * table.row_bytes()));
        }
      },
      [] { return wire::Buffer(); });
  table.BeginSave(1, &collector);
  for (int64_t number = 2; number <= 20; ++number) PushAll(table, Range(100, 110), number);
  EXPECT_EQ(table.rows(), 10U);
  table.SaveSome([] { return false; });
  collector.End();
  table.EndSave();
  const std::vector<int64_t> all = Range(0, 10);
  EXPECT_EQ(saved, std::set<int64_t>(all.begin(), all.end()));
}

TEST(Table, AgreesWithAPlainMapOnRandomStreams) {
  constexpr size_t kDim = 3;
  const OptimizerOptions options{.name = "Momentum", .momentum = 0.9F};
  const auto momentum = std::move(*MakeOptimizer(options));
  const Initializer initializer = Initializer::Uniform(-1, 1);
  Table table(Spec(kDim, initializer, options));
  std::unordered_map<int64_t, std::vector<float>> model;  // weights, then the slot
  std::mt19937_64 random(3);
  for (int step = 0; step < 300; ++step) {
    std::set<int64_t> drawn;
    const size_t count = random() % 300;
    while (drawn.size() < count) drawn.insert(static_cast<int64_t>(random() % 5000) - 2500);
    const std::vector<int64_t> ids(drawn.begin(), drawn.end());
    std::vector<float> gradients(ids.size() * kDim);
    for (float& value : gradients) value = static_cast<float>(random() % 100) / 50 - 1;
    const Step at{.learning_rate = 0.1F, .number = step + 1};
    table.Push(ids, gradients.data(), at, 0);
    for (size_t i = 0; i < ids.size(); ++i) {
      auto [entry, made] = model.try_emplace(ids[i], 2 * kDim);
      if (made) initializer.Fill(table.spec().seed, ids[i], {entry->second.data(), kDim});
      float* const block = entry->second.data();
      momentum->Apply({&block, 1}, kDim, &gradients[i * kDim], at);
    }
  }
  ASSERT_EQ(table.rows(), model.size());
  for (const auto& [id, block] : model) {
    ASSERT_EQ(PullOf(table, {id}), std::vector<float>(block.begin(), block.begin() + kDim)) << id;
  }
}

TEST(Table, TakesLittleMoreThanItsPayload) {
  Table table(Spec(16, Initializer::Constant(0), {.name = "Adagrad"}));
  std::vector<int64_t> ids(300'000);
  std::iota(ids.begin(), ids.end(), 0);
  PullOf(table, ids);
  EXPECT_EQ(table.row_bytes(), 144U);
  EXPECT_LE(table.bytes() / table.rows(), 190U);
}

}  // namespace
}  // namespace edl::ps
