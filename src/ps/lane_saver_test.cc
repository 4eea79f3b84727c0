#include "ps/lane_saver.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/testing/await.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "checkpoint/part_file.h"
#include "ps/lane_checkpoint_reader.h"

namespace edl::ps {
namespace {

namespace fs = std::filesystem;

constexpr BucketRange kAll{.first = 0, .end = wire::kBuckets};
constexpr size_t kTensorValues = 3 * wire::kBlockValues;
constexpr size_t kNoLimit = size_t{1} << 30;

// A lane with one row, of id 7, and a tensor of three blocks. The saver runs on the lane's thread
// and writes on another.
class LaneSaverTest : public testing::Test {
 protected:
  LaneSaverTest() {
    declared_ = *state_.Add(
        {.tables = {{.name = "t", .dim = 1}}, .tensors = {{.name = "d", .size = kTensorValues}}});
    const int64_t id = 7;
    float row = 0;
    declared_.tables[0]->Pull({&id, 1}, Table::Unknown::kMake, &row);
    declared_.tensors[0]->Put(std::vector<float>(kTensorValues, 1).data());
  }
  ~LaneSaverTest() override { DestroySaver(); }

  void MakeSaver(size_t buffer_bytes) {
    lane_.Run([&] {
      saver_.emplace(
          state_, lane_.loop(), disk_.loop(), clock_, [this] { ++rooms_; },
          LaneSaver::Options{.buffer_bytes = buffer_bytes, .saved_bytes = &saved_bytes_});
    });
  }
  void DestroySaver() {
    lane_.Run([&] { saver_.reset(); });
    disk_.Run([] {});  // the disk has done what was posted to it
  }
  // Starts a save to path_. REQUIRES: called on the lane's thread.
  Status Begin() {
    return saver_->Begin(path_, [this](const Result<SaveReport>& done) { done_.set_value(done); });
  }
  // The result of the save that was started.
  Result<SaveReport> Done() {
    std::future<Result<SaveReport>> done = done_.get_future();
    if (const Status status = AwaitReady(done, "the end of the save"); !status.ok()) return status;
    done_ = {};
    return done.get();
  }
  Result<LaneState> Restored() const {
    LaneCheckpointReader reader(kAll, RestoreMode::kResume);
    EDL_ASSIGN_OR_RETURN(const auto part, checkpoint::PartReader::Open(path_));
    EDL_RETURN_IF_ERROR(reader.Read(*part));
    return std::move(reader).Finish();
  }

  const TemporaryFolder folder_;
  const fs::path path_ = folder_.path() / "part";
  const SystemClock clock_;
  LaneState state_{kAll};
  DeclaredParameters declared_;
  std::atomic<uint64_t> saved_bytes_ = 0;
  int rooms_ = 0;  // calls of on_room, on the lane's thread
  std::promise<Result<SaveReport>> done_;
  std::optional<LaneSaver> saver_;
  LoopThread disk_{std::move(*EventLoop::Make(clock_))};
  LoopThread lane_{std::move(*EventLoop::Make(clock_))};
};

TEST_F(LaneSaverTest, WritesAPartThatRestoresTheLane) {
  MakeSaver(kNoLimit);
  lane_.Run([&] {
    ASSERT_OK(Begin());
    EXPECT_TRUE(saver_->running());
    EXPECT_FALSE(saver_->IsFull());
  });

  ASSERT_OK_AND_ASSIGN(const SaveReport report, Done());

  EXPECT_EQ(report.bytes, fs::file_size(path_));
  EXPECT_GE(report.took, report.longest_pause);
  EXPECT_GT(saved_bytes_, kTensorValues * sizeof(float));
  lane_.Run([&] { EXPECT_FALSE(saver_->running()); });
  ASSERT_OK_AND_ASSIGN(const LaneState restored, Restored());
  EXPECT_EQ(restored.parameters.rows(), 1U);
  EXPECT_TRUE(restored.parameters.tensors().at("d")->has_value());
}

TEST_F(LaneSaverTest, SavesTheLaneAsItWasAtTheStart) {
  MakeSaver(kNoLimit);
  lane_.Run([&] {
    ASSERT_OK(Begin());
    declared_.tensors[0]->Push(std::vector<float>(kTensorValues, 5).data(),
                               [](wire::Bucket) { return std::optional(Step{}); });
  });
  ASSERT_OK(Done());
  ASSERT_OK_AND_ASSIGN(const LaneState restored, Restored());
  std::vector<float> values(kTensorValues);
  restored.parameters.tensors().at("d")->Pull(values.data());
  EXPECT_THAT(values, testing::Each(1.0F));
}

TEST_F(LaneSaverTest, RejectsASaveWhileAnotherIsRunning) {
  MakeSaver(kNoLimit);
  lane_.Run([&] {
    ASSERT_OK(Begin());
    EXPECT_THAT(saver_->Begin(folder_.path() / "other", nullptr),
                StatusIs(Code::kFailedPrecondition, testing::HasSubstr(path_.string())));
  });
  EXPECT_OK(Done());
}

TEST_F(LaneSaverTest, RemovesTheFileOfACancelledSave) {
  MakeSaver(kNoLimit);
  lane_.Run([&] {
    ASSERT_OK(Begin());
    saver_->Cancel();
    EXPECT_FALSE(saver_->running());
  });
  EXPECT_THAT(Done(), StatusIs(Code::kCancelled));
  disk_.Run([] {});
  EXPECT_FALSE(fs::exists(path_));

  lane_.Run([&] { ASSERT_OK(Begin()); });
  EXPECT_OK(Done()) << "the next save does not see the cancelled one";
  EXPECT_OK(Restored());
}

TEST_F(LaneSaverTest, RemovesTheFileWhenItIsDestroyed) {
  MakeSaver(kNoLimit);
  lane_.Run([&] { ASSERT_OK(Begin()); });
  DestroySaver();
  EXPECT_FALSE(fs::exists(path_));
  EXPECT_FALSE(state_.parameters.saving());
}

TEST_F(LaneSaverTest, LeavesAFileThatIsThereAlready) {
  std::ofstream(path_) << "mine";
  MakeSaver(kNoLimit);
  lane_.Run([&] { ASSERT_OK(Begin()); });
  EXPECT_THAT(Done(), StatusIs(Code::kAlreadyExists));
  disk_.Run([] {});
  std::ifstream file(path_);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "mine");
}

TEST_F(LaneSaverTest, MakesPushesWaitUntilTheDiskHasTakenTheChunks) {
  MakeSaver(1);
  std::promise<void> disk_is_slow;
  disk_.loop().Post([&] { EXPECT_OK(AwaitReady(disk_is_slow.get_future(), "the slow disk")); });
  lane_.Run([&] {
    ASSERT_OK(Begin());
    EXPECT_TRUE(saver_->IsFull());
    EXPECT_EQ(rooms_, 0);
  });

  disk_is_slow.set_value();

  ASSERT_OK(Done());
  lane_.Run([&] {
    EXPECT_FALSE(saver_->IsFull());
    EXPECT_GT(rooms_, 0);
  });
}

}  // namespace
}  // namespace edl::ps
