#include "checkpoint/new_checkpoint.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "base/text.h"

namespace edl::checkpoint {
namespace {

using testing::SizeIs;

constexpr job::PsIncarnation kIncarnation(0xab);

std::string AnswerOf(uint64_t bytes, double seconds) {
  return wire::Encode(wire::SaveAnswer{.bytes = bytes, .seconds = seconds});
}

TEST(NewCheckpoint, TellsEachLaneItsFile) {
  NewCheckpoint checkpoint("/checkpoints/one");
  wire::Save save;
  ASSERT_OK(wire::Decode(AsBytes(checkpoint.AddPart(job::LaneInJob(1), 2, kIncarnation)), save));
  EXPECT_EQ(save.path, "/checkpoints/one/part-0001-of-0002-00000000000000ab");
}

TEST(NewCheckpoint, CompletesItsManifestFromTheAnswers) {
  NewCheckpoint checkpoint("/checkpoints/one", {.ps_epoch = job::PsEpoch(4), .version = 9});
  checkpoint.AddPart(job::LaneInJob(0), 2, kIncarnation);
  checkpoint.AddPart(job::LaneInJob(1), 2, kIncarnation);
  ASSERT_OK(checkpoint.AddAnswer(0, AnswerOf(100, 2)));
  ASSERT_OK(checkpoint.AddAnswer(1, AnswerOf(7, 1)));

  const Manifest& manifest = checkpoint.manifest();
  EXPECT_EQ(manifest.ps_epoch, job::PsEpoch(4));
  EXPECT_EQ(manifest.version, 9);
  ASSERT_THAT(manifest.parts, SizeIs(2));
  EXPECT_EQ(manifest.parts[0].bytes, 100U);
  EXPECT_EQ(manifest.parts[0].end_bucket, 512U);
  EXPECT_EQ(manifest.parts[1].bytes, 7U);
  EXPECT_EQ(manifest.parts[1].first_bucket, 512U);
  EXPECT_EQ(checkpoint.total().bytes, 107U);
  EXPECT_DOUBLE_EQ(checkpoint.total().seconds, 2);
}

TEST(NewCheckpoint, RefusesAnAnswerThatIsNoAnswerToSave) {
  NewCheckpoint checkpoint("/checkpoints/one");
  checkpoint.AddPart(job::LaneInJob(0), 1, kIncarnation);
  EXPECT_THAT(checkpoint.AddAnswer(0, "x"), StatusIs(Code::kInvalidArgument));
}

TEST(NewCheckpoint, RemovesOnlyItsOwnParts) {
  const TemporaryFolder folder;
  NewCheckpoint checkpoint(folder.path());
  checkpoint.AddPart(job::LaneInJob(0), 2, kIncarnation);
  checkpoint.AddPart(job::LaneInJob(1), 2, kIncarnation);  // was never written
  const std::filesystem::path own = folder.path() / PartName(job::LaneInJob(0), 2, kIncarnation);
  const std::filesystem::path other =
      folder.path() / PartName(job::LaneInJob(0), 2, kIncarnation.Next());
  std::ofstream(own) << "parameters";
  std::ofstream(other) << "parameters";
  checkpoint.RemoveParts();
  EXPECT_FALSE(std::filesystem::exists(own));
  EXPECT_TRUE(std::filesystem::exists(other));
}

}  // namespace
}  // namespace edl::checkpoint
