#include "ps/pull_pieces.h"

#include <cstring>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::ps {
namespace {

constexpr size_t kDim = 30;          // rows of 120 bytes, which do not divide a piece
constexpr size_t kIds = 40'000;      // 4.8 MB
constexpr size_t kValues = 700'000;  // 43 blocks, the last one shorter

// A lane with the rows 0..kIds-1 and a tensor.
class PullPiecesTest : public testing::Test {
 protected:
  PullPiecesTest() : ids_(kIds), values_(kValues) {
    declared_ = *lane_.Declare(
        {.tables =
             {{.name = "t", .dim = kDim, .initializer = Initializer::Uniform(-1, 1), .seed = 1}},
         .tensors = {{.name = "d", .size = kValues}}});
    std::iota(ids_.begin(), ids_.end(), 0);
    std::iota(values_.begin(), values_.end(), 0.0F);
    declared_.tensors[0]->Put(values_.data());
  }

  Lane::PullPlan Plan() const {
    const std::span<const std::byte> ids = std::as_bytes(std::span(ids_));
    return *lane_.Plan(declared_,
                       {.tables = {{.ids = static_cast<uint32_t>(kIds)}}, .tensors = {0}}, ids);
  }

  std::vector<int64_t> ids_;
  std::vector<float> values_;
  Lane lane_{wire::Placement(1), job::LaneInJob(0)};
  DeclaredParameters declared_;
};

TEST_F(PullPiecesTest, AreTogetherTheSameAsAPull) {
  const Lane::PullPlan plan = Plan();
  std::vector<std::byte> whole(plan.bytes);
  lane_.Pull(plan, whole.data());

  PullPieces pieces(lane_, Plan());
  ASSERT_EQ(pieces.bytes(), plan.bytes);
  std::vector<std::byte> together;
  size_t count = 0;
  for (; pieces.NextBytes() > 0; ++count) {
    EXPECT_LE(pieces.NextBytes(), PullPieces::kPieceBytes);
    const size_t at = together.size();
    together.resize(at + pieces.NextBytes());
    ASSERT_TRUE(pieces.WriteNext(together.data() + at));
  }

  EXPECT_GT(count, plan.bytes / PullPieces::kPieceBytes);
  EXPECT_TRUE(together == whole);
}

TEST_F(PullPiecesTest, HaveRowsAsTheyAreWhenTheirPieceIsWritten) {
  PullPieces pieces(lane_, Plan());
  std::vector<std::byte> piece(pieces.NextBytes());
  ASSERT_TRUE(pieces.WriteNext(piece.data()));
  while (pieces.NextBytes() > 0) {
    // The tensor changes before its pieces are written.
    if (pieces.NextBytes() == piece.size() && values_[0] == 0) {
      values_[0] = 1;
      const std::vector<float> changes(kValues, 1);
      declared_.tensors[0]->Push(changes.data(),
                                 [](wire::Bucket) { return std::optional(Step{}); });
    }
    piece.resize(pieces.NextBytes());
    ASSERT_TRUE(pieces.WriteNext(piece.data()));
  }
  // The last piece ends with the last value of the tensor, then padding.
  const size_t padding = wire::AlignedUp(kValues * sizeof(float)) - kValues * sizeof(float);
  float last = 0;
  std::memcpy(&last, piece.data() + piece.size() - padding - sizeof(float), sizeof(float));
  EXPECT_EQ(last, values_.back() + 1);
}

TEST_F(PullPiecesTest, EndWhenTheLaneIsRestored) {
  PullPieces pieces(lane_, Plan());
  std::vector<std::byte> piece(PullPieces::kPieceBytes);
  ASSERT_TRUE(pieces.WriteNext(piece.data()));
  lane_.Adopt(LaneState(lane_.state().buckets));
  EXPECT_FALSE(pieces.WriteNext(piece.data()));
}

TEST_F(PullPiecesTest, HaveALongRowInAPieceOfItsOwn) {
  constexpr size_t kLong = PullPieces::kPieceBytes / sizeof(float) + 5;
  Lane lane(wire::Placement(1), job::LaneInJob(0));
  ASSERT_OK_AND_ASSIGN(const DeclaredParameters declared,
                       lane.Declare({.tables = {{.name = "long", .dim = kLong}}}));
  const std::vector<int64_t> ids = {1, 2};
  ASSERT_OK_AND_ASSIGN(Lane::PullPlan plan, lane.Plan(declared, {.tables = {{.ids = 2}}},
                                                      std::as_bytes(std::span(ids))));
  PullPieces pieces(lane, std::move(plan));
  EXPECT_EQ(pieces.NextBytes(), kLong * sizeof(float));
  std::vector<std::byte> piece(wire::AlignedUp(2 * kLong * sizeof(float)));
  ASSERT_TRUE(pieces.WriteNext(piece.data()));
  EXPECT_EQ(pieces.NextBytes(), piece.size() - kLong * sizeof(float)) << "with padding";
}

}  // namespace
}  // namespace edl::ps
