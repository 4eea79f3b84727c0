#include "ps/lane_checkpoint_reader.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "wire/meta.h"

namespace edl::ps {
namespace {

using checkpoint::Chunk;
using checkpoint::ChunkKind;
using ::testing::HasSubstr;

constexpr BucketRange kAll{.first = 0, .end = wire::kBuckets};
constexpr const char* kPath = "some/part";

Chunk Head(size_t first = 0, size_t end = wire::kBuckets) {
  return {.kind = ChunkKind::kHead,
          .content = wire::BufferOf(fmt::format(
              R"({{"format": 1, "first_bucket": {}, "end_bucket": {}, "parameters": {{
                  "consistency": {{"gradients": 2, "tolerance": 1}},
                  "tables": [{{"name": "t", "dim": 1, "row_seed": 1}}],
                  "tensors": [{{"name": "d", "size": 1}}]}}}})",
              first, end))};
}

// One gradient of 5 for row 1, in a round that has one contributor in each bucket.
std::vector<Chunk> OpenRound() {
  wire::MetaWriter counts;
  for (size_t bucket = 0; bucket < wire::kBuckets; ++bucket) {
    counts.Add(uint32_t{1});
    counts.Add(uint64_t{1});
  }
  wire::MetaWriter rows;
  rows.Add(1.0F);
  rows.Add(int64_t{1});
  rows.Add(5.0F);
  std::vector<Chunk> chunks;
  chunks.push_back({.kind = ChunkKind::kRound,
                    .records = wire::kBuckets,
                    .content = wire::BufferOf(std::move(counts).text())});
  chunks.push_back({.kind = ChunkKind::kRoundRows,
                    .records = 1,
                    .content = wire::BufferOf(std::move(rows).text())});
  return chunks;
}

TEST(LaneCheckpointReader, ReadsTheBucketsOfAHead) {
  EXPECT_EQ(*LaneCheckpointReader::BucketsOf(Head(3, 8)), (BucketRange{.first = 3, .end = 8}));
  EXPECT_THAT(LaneCheckpointReader::BucketsOf(Head(8, 8)), StatusIs(Code::kDataLoss));
  EXPECT_THAT(LaneCheckpointReader::BucketsOf(Head(0, 1025)), StatusIs(Code::kDataLoss));
}

TEST(LaneCheckpointReader, RejectsAChunkBeforeTheHeadAndASecondHead) {
  LaneCheckpointReader no_head(kAll, RestoreMode::kResume);
  no_head.BeginPart();
  const Status status = no_head.Take(OpenRound()[0], kPath);
  EXPECT_THAT(status, StatusIs(Code::kDataLoss));
  EXPECT_THAT(status.message(), HasSubstr("some/part: a part must start with its head"));

  LaneCheckpointReader two_heads(kAll, RestoreMode::kResume);
  two_heads.BeginPart();
  ASSERT_OK(two_heads.Take(Head(), kPath));
  EXPECT_THAT(two_heads.Take(Head(), kPath), StatusIs(Code::kDataLoss));
}

TEST(LaneCheckpointReader, RejectsAChunkOfATableThatTheHeadDoesNotHave) {
  LaneCheckpointReader reader(kAll, RestoreMode::kResume);
  ASSERT_OK(reader.Take(Head(), kPath));
  const Status status = reader.Take({.kind = ChunkKind::kRows, .index = 1}, kPath);
  EXPECT_THAT(status, StatusIs(Code::kDataLoss));
  EXPECT_THAT(status.message(), HasSubstr("about table 1, but the head has only 1"));
}

TEST(LaneCheckpointReader, RestoresOpenRoundsToResume) {
  LaneCheckpointReader reader(kAll, RestoreMode::kResume);
  ASSERT_OK(reader.Take(Head(), kPath));
  for (const Chunk& chunk : OpenRound()) ASSERT_OK(reader.Take(chunk, kPath));
  const Result<LaneState> state = std::move(reader).Finish();
  ASSERT_OK(state);
  EXPECT_EQ(state->rounds.contributors(0), 1U);
  EXPECT_NE(state->rounds.FindRows(*state->parameters.tables().at("t")), nullptr);
}

TEST(LaneCheckpointReader, SkipsOpenRoundsForParametersOnly) {
  LaneCheckpointReader reader(kAll, RestoreMode::kParametersOnly);
  ASSERT_OK(reader.Take(Head(), kPath));
  for (const Chunk& chunk : OpenRound()) ASSERT_OK(reader.Take(chunk, kPath));
  const Result<LaneState> state = std::move(reader).Finish();
  ASSERT_OK(state);
  EXPECT_EQ(state->rounds.contributors(0), 0U);
  EXPECT_EQ(state->rounds.FindRows(*state->parameters.tables().at("t")), nullptr);
}

TEST(LaneCheckpointReader, RestoresAnEmptyCheckpointToAnEmptyLane) {
  using Coverage = LaneCheckpointReader::Coverage;
  const auto state =
      LaneCheckpointReader(kAll, RestoreMode::kResume).Finish(Coverage::kEmptyCheckpoint);
  ASSERT_OK(state);
  EXPECT_TRUE(state->parameters.tables().empty());
}

}  // namespace
}  // namespace edl::ps
