#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "ps/lane.h"
#include "ps/lane_checkpoint_reader.h"
#include "ps/lane_checkpoint_writer.h"
#include "wire/frame.h"

namespace edl::ps {
namespace {

namespace fs = std::filesystem;
using Outcome = wire::PushOutcome;
using ::testing::HasSubstr;

constexpr wire::ShardKey kShard{
    .ledger = job::LedgerId(3), .dataset = job::DatasetId(1), .generation = 1};
constexpr job::LeaseId kLease(4);
constexpr size_t kDim = 2;
constexpr int64_t kIds = 3000;

constexpr const char* kParameters = R"({"seed": 2,
    "tables": [{"name": "adam", "dim": 2, "optimizer": {"name": "Adam"}},
               {"name": "sgd", "dim": 1, "initializer": {"name": "zeros"}}],
    "tensors": [{"name": "d", "size": 40000, "optimizer": {"name": "Adagrad"}},
                {"name": "unset", "size": 5}]})";

using Values = std::vector<float>;

// The tensor part of a frame.
template <typename Value>
void Append(std::vector<std::byte>& bytes, const std::vector<Value>& values) {
  const size_t begin = wire::AlignedUp(bytes.size());
  bytes.resize(begin + values.size() * sizeof(Value));
  if (values.empty()) return;
  std::memcpy(bytes.data() + begin, values.data(), values.size() * sizeof(Value));
}

// All lanes of a job, used together.
class Lanes {
 public:
  explicit Lanes(size_t count) : placement_(count) {
    for (uint32_t place = 0; place < count; ++place) {
      lanes_.push_back(std::make_unique<Lane>(placement_, job::LaneInJob(place)));
    }
  }

  void Declare(const Consistency& consistency = {}) {
    declared_.clear();
    Declaration declaration = *ParseDeclaration(kParameters);
    declaration.consistency = consistency;
    for (const auto& lane : lanes_) {
      ASSERT_OK_AND_ASSIGN(DeclaredParameters declared, lane->Declare(declaration));
      declared_.push_back(std::move(declared));
    }
  }

  void PutTensor(float value) {
    for (size_t i = 0; i < lanes_.size(); ++i) {
      std::vector<std::byte> tensors;
      Append(tensors, Values(declared_[i].tensors[0]->values(), value));
      ASSERT_OK(lanes_[i]->Put(declared_[i], {.tensors = {0}}, tensors));
    }
  }

  // Pushes gradients that depend on the ids and the batch, to table and tensor.
  std::vector<Outcome> Push(job::LeaseId lease, uint64_t batch, const std::vector<int64_t>& ids) {
    std::vector<Outcome> outcomes;
    for (size_t i = 0; i < lanes_.size(); ++i) {
      std::vector<int64_t> own;
      Values gradients;
      for (const int64_t id : ids) {
        if (placement_.LaneOf(wire::BucketOf(id)).value() != i) continue;
        own.push_back(id);
        for (size_t k = 0; k < kDim; ++k) {
          gradients.push_back(static_cast<float>(id % 7) + static_cast<float>(batch) - 2.5F);
        }
      }
      std::vector<std::byte> tensors;
      Append(tensors, own);
      Append(tensors, gradients);
      Append(tensors, Values(declared_[i].tensors[0]->values(), static_cast<float>(batch) + 1));
      const auto pushed = lanes_[i]->Push(
          declared_[i],
          {.lease = lease,
           .shard = kShard,
           .batch = batch,
           .tables = {{.ids = static_cast<uint32_t>(own.size()), .learning_rate = 0.1F}},
           .tensors = {{.learning_rate = 0.1F}}},
          tensors);
      EXPECT_OK(pushed);
      outcomes.push_back(pushed->outcome);
    }
    return outcomes;
  }

  std::vector<uint64_t> Open(job::LeaseId lease) {
    std::vector<uint64_t> watermarks;
    for (const auto& lane : lanes_) {
      const auto opened = lane->Open({.lease = lease, .shard = kShard});
      EXPECT_OK(opened);
      watermarks.push_back(opened.ok() ? opened->watermark : UINT64_MAX);
    }
    return watermarks;
  }

  // The first row values of all ids, and of the tensor under id -1. Creates no rows.
  std::map<int64_t, Values> Content() {
    std::map<int64_t, Values> content;
    for (size_t i = 0; i < lanes_.size(); ++i) {
      for (int64_t id = 0; id < kIds; ++id) {
        if (placement_.LaneOf(wire::BucketOf(id)).value() != i) continue;
        Values row(kDim);
        declared_[i].tables[0]->Pull({&id, 1}, Table::Unknown::kTell, row.data());
        content[id] = row;
      }
      Values tensor(declared_[i].tensors[0]->values());
      if (declared_[i].tensors[0]->has_value()) declared_[i].tensors[0]->Pull(tensor.data());
      // All blocks have the same values.
      if (!tensor.empty()) content[-1] = {tensor.front(), tensor.back()};
    }
    return content;
  }

  size_t rows() const {
    size_t sum = 0;
    for (const auto& lane : lanes_) sum += lane->state().parameters.rows();
    return sum;
  }

  Lane& operator[](size_t i) { return *lanes_[i]; }
  DeclaredParameters& declared(size_t i) { return declared_[i]; }
  size_t size() const { return lanes_.size(); }

  Status Restore(const std::vector<fs::path>& parts) {
    for (const auto& lane : lanes_) {
      LaneCheckpointReader reader(lane->state().buckets, RestoreMode::kResume);
      for (const fs::path& path : parts) {
        EDL_ASSIGN_OR_RETURN(const auto part, checkpoint::PartReader::Open(path));
        EDL_RETURN_IF_ERROR(reader.Read(*part));
      }
      EDL_ASSIGN_OR_RETURN(LaneState restored, std::move(reader).Finish());
      lane->Adopt(std::move(restored));
    }
    return Ok();
  }

 private:
  const wire::Placement placement_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<DeclaredParameters> declared_;
};

std::vector<int64_t> Some(std::mt19937_64& random) {
  std::vector<int64_t> ids;
  for (int64_t id = 0; id < kIds; ++id) {
    if (random() % 5 == 0) ids.push_back(id);
  }
  return ids;
}

class LaneCheckpointTest : public testing::Test {
 protected:
  LaneCheckpointTest() { fs::create_directories(folder_); }
  ~LaneCheckpointTest() override { fs::remove_all(folder_); }

  fs::path PartOf(size_t lane) const { return folder_ / fmt::format("part-{}", lane); }

  // Begins a save of one lane; chunks go to its part.
  void Begin(Lanes& lanes, size_t lane) {
    fs::remove(PartOf(lane));
    files_[lane] = *checkpoint::PartWriter::Create(PartOf(lane));
    saves_[lane] = std::make_unique<LaneCheckpointWriter>(
        lanes[lane].state(),
        [this, lane](const checkpoint::Chunk& chunk) { ASSERT_OK(files_[lane]->Write(chunk)); });
  }
  // Saves a few records. False: the save is complete.
  bool SaveSome(size_t lane) {
    return saves_[lane]->SaveSome([] { return true; });
  }
  void Finish(size_t lane) {
    while (saves_[lane]->SaveSome([] { return false; })) {
    }
    saves_[lane].reset();
    ASSERT_OK(files_[lane]->Finish());
  }
  std::vector<fs::path> Parts(const Lanes& lanes) const {
    std::vector<fs::path> parts;
    for (size_t i = 0; i < lanes.size(); ++i) parts.push_back(PartOf(i));
    return parts;
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / fmt::format("ckpt-{}", getpid());
  std::map<size_t, std::unique_ptr<checkpoint::PartWriter>> files_;  // by lane
  std::map<size_t, std::unique_ptr<LaneCheckpointWriter>> saves_;    // by lane
  std::mt19937_64 random_{7};
};

TEST_F(LaneCheckpointTest, SavesTheStateOfTheStartWhileTheLaneChanges) {
  Lanes lanes(2);
  lanes.Declare();
  lanes.PutTensor(1);
  lanes.Open(kLease);
  uint64_t batch = 0;
  for (; batch < 5; ++batch) lanes.Push(kLease, batch, Some(random_));
  const auto at_cut = lanes.Content();
  const size_t rows_at_cut = lanes.rows();

  for (size_t i = 0; i < 2; ++i) Begin(lanes, i);
  for (int slice = 0; slice < 12; ++slice) {
    for (size_t i = 0; i < 2; ++i) {
      if (saves_[i] != nullptr && !SaveSome(i)) Finish(i);
    }
    lanes.Push(kLease, batch++, Some(random_));
    // Rows are also removed and created again.
    for (int64_t id = 0; id < 20; ++id) {
      const auto gone = static_cast<int64_t>(random_() % kIds);
      for (size_t i = 0; i < 2; ++i) lanes.declared(i).tables[0]->Remove(gone);
    }
  }
  for (size_t i = 0; i < 2; ++i) {
    if (saves_[i] != nullptr) Finish(i);
  }
  ASSERT_NE(lanes.Content(), at_cut);

  for (const size_t count : {1, 2, 3, 7}) {
    Lanes restored(count);
    ASSERT_OK(restored.Restore(Parts(lanes)));
    restored.Declare();
    EXPECT_EQ(restored.Content(), at_cut) << count << " lanes";
    EXPECT_EQ(restored.rows(), rows_at_cut);
    EXPECT_EQ(restored.Open(kLease.Next()), std::vector<uint64_t>(count, 5));
  }
}

TEST_F(LaneCheckpointTest, LeavesTheConsistencyOpenWhenADeclarationIsRejected) {
  Lanes lanes(1);
  lanes.Declare();
  lanes.PutTensor(1);
  Begin(lanes, 0);
  Finish(0);
  Lanes restored(1);
  ASSERT_OK(restored.Restore(Parts(lanes)));
  Declaration wrong = *ParseDeclaration(kParameters);
  wrong.consistency.gradients = 3;
  ++wrong.tables[0].dim;

  EXPECT_THAT(restored[0].Declare(wrong), StatusIs(Code::kFailedPrecondition));

  restored.Declare();
}

// Lanes that are saved at different batches are in different rounds.
TEST_F(LaneCheckpointTest, KeepsRoundsThatAreOpen) {
  const Consistency rounds{.gradients = 3, .tolerance = 100};
  Lanes lanes(2);
  lanes.Declare(rounds);
  lanes.PutTensor(1);
  lanes.Open(kLease);
  std::vector<std::vector<int64_t>> batches(9);
  for (auto& batch : batches) batch = Some(random_);
  for (uint64_t batch = 0; batch < 5; ++batch) lanes.Push(kLease, batch, batches[batch]);
  Begin(lanes, 0);
  Finish(0);
  lanes.Push(kLease, 5, batches[5]);
  Begin(lanes, 1);
  Finish(1);
  for (uint64_t batch = 6; batch < 9; ++batch) lanes.Push(kLease, batch, batches[batch]);

  for (const size_t count : {1, 2, 3}) {
    Lanes restored(count);
    ASSERT_OK(restored.Restore(Parts(lanes)));
    restored.Declare(rounds);
    restored.Open(kLease.Next());
    for (uint64_t batch = 5; batch < 9; ++batch)
      restored.Push(kLease.Next(), batch, batches[batch]);
    EXPECT_EQ(restored.Content(), lanes.Content()) << count << " lanes";
  }
}

TEST_F(LaneCheckpointTest, TrainsOnAsWithoutARestore) {
  Lanes lanes(2);
  lanes.Declare();
  lanes.PutTensor(1);
  lanes.Open(kLease);
  for (uint64_t batch = 0; batch < 5; ++batch) lanes.Push(kLease, batch, Some(random_));
  // The lanes are saved at different batches.
  Begin(lanes, 0);
  Finish(0);
  lanes.Push(kLease, 5, Some(random_));
  Begin(lanes, 1);
  Finish(1);
  // Compute the ids of the last batch again.
  Lanes restored(3);
  ASSERT_OK(restored.Restore(Parts(lanes)));
  restored.Declare();
  std::mt19937_64 again = random_;
  const auto ids = Some(random_);

  std::mt19937_64 replay(7);
  std::vector<std::vector<int64_t>> batches;
  batches.reserve(6);
  for (int i = 0; i < 6; ++i) batches.push_back(Some(replay));
  EXPECT_EQ(again, replay);
  restored.Open(kLease.Next());
  restored.Push(kLease.Next(), 5, batches[5]);
  for (uint64_t batch = 6; batch < 9; ++batch) {
    lanes.Push(kLease, batch, ids);
    for (const Outcome outcome : restored.Push(kLease.Next(), batch, ids)) {
      EXPECT_EQ(outcome, Outcome::kApplied);
    }
  }

  EXPECT_EQ(restored.Content(), lanes.Content());
}

TEST_F(LaneCheckpointTest, IsCompleteAfterManyCancelledSaves) {
  Lanes lanes(1);
  lanes.Declare();
  lanes.PutTensor(1);
  lanes.Open(kLease);
  lanes.Push(kLease, 0, Some(random_));
  for (int i = 0; i < 255; ++i) {  // save numbers wrap around
    Begin(lanes, 0);
    SaveSome(0);
    saves_[0].reset();
  }
  const auto at_cut = lanes.Content();
  Begin(lanes, 0);
  Finish(0);

  Lanes restored(1);
  ASSERT_OK(restored.Restore(Parts(lanes)));
  restored.Declare();
  EXPECT_EQ(restored.Content(), at_cut);
}

TEST_F(LaneCheckpointTest, KeepsTheFloor) {
  Lanes lanes(1);
  lanes.Declare();
  lanes[0].state().watermarks.RaiseFloor(job::LeaseId(100));
  Begin(lanes, 0);
  Finish(0);
  Lanes restored(1);
  ASSERT_OK(restored.Restore(Parts(lanes)));
  EXPECT_THAT(restored[0].Open({.lease = job::LeaseId(99), .shard = kShard}),
              StatusIs(Code::kAborted));
}

TEST_F(LaneCheckpointTest, IsRejectedWhenAnyByteIsWrong) {
  Lanes lanes(1);
  lanes.Declare();
  lanes.PutTensor(1);
  lanes.Open(kLease);
  lanes.Push(kLease, 0, {1, 2, 3});
  Begin(lanes, 0);
  Finish(0);
  std::ifstream file(PartOf(0), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(file)), {});
  const auto restore = [&](const std::string& bytes) {
    std::ofstream(folder_ / "bad", std::ios::binary) << bytes;
    Lanes restored(1);
    return restored.Restore({folder_ / "bad"});
  };
  ASSERT_OK(restore(whole));
  // Every 13th byte at both ends of the file, and some of the values of tensors.
  for (size_t at = 0; at < whole.size(); at += at < 4000 || at + 1000 > whole.size() ? 13 : 20011) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    const Status status = restore(bytes);
    ASSERT_THAT(status, StatusIs(Code::kDataLoss)) << "byte " << at << ": " << status;
    ASSERT_THAT(status.message(), HasSubstr("bad"));
    ASSERT_THAT(restore(whole.substr(0, at)), StatusIs(Code::kDataLoss)) << "cut at " << at;
  }
  EXPECT_THAT(restore(whole + "x"), StatusIs(Code::kDataLoss));
}

TEST_F(LaneCheckpointTest, IsRejectedWhenAPartIsMissingOrThereTwice) {
  Lanes lanes(2);
  lanes.Declare();
  lanes.PutTensor(1);
  for (size_t i = 0; i < 2; ++i) {
    Begin(lanes, i);
    Finish(i);
  }
  for (const size_t count : {1, 2, 3}) {
    Lanes restored(count);
    const Status missing = restored.Restore({PartOf(1)});
    EXPECT_THAT(missing, StatusIs(Code::kDataLoss));
    EXPECT_THAT(missing.message(), HasSubstr("a part is missing"));
    Lanes twice(count);
    EXPECT_THAT(twice.Restore({PartOf(0), PartOf(1), PartOf(1)}), StatusIs(Code::kDataLoss));
  }
}

TEST_F(LaneCheckpointTest, ReadsOnlyTheHeadsOfPartsOfOtherLanes) {
  Lanes lanes(4);
  lanes.Declare();
  lanes.PutTensor(1);
  lanes.Open(kLease);
  lanes.Push(kLease, 0, Some(random_));
  for (size_t i = 0; i < 4; ++i) {
    Begin(lanes, i);
    Finish(i);
  }
  LaneCheckpointReader reader(BucketRange::OfLane(wire::Placement(4), job::LaneInJob(2)),
                              RestoreMode::kResume);
  for (size_t i = 0; i < 4; ++i) {
    std::atomic<uint64_t> read = 0;
    const auto part = checkpoint::PartReader::Open(PartOf(i), &read);
    ASSERT_OK(reader.Read(**part));
    EXPECT_EQ(read == fs::file_size(PartOf(i)), i == 2) << i;
  }
  EXPECT_OK(std::move(reader).Finish().status());
}

TEST_F(LaneCheckpointTest, ReplacesTheStateOfALaneAtOnce) {
  Lanes lanes(1);
  lanes.Declare();
  lanes.PutTensor(1);
  lanes.Open(kLease);
  lanes.Push(kLease, 0, {1, 2, 3});
  Begin(lanes, 0);
  Finish(0);

  Lanes other(1);
  other.Declare();
  std::vector<float> row(kDim);
  const std::vector<int64_t> ids = {77};
  other.declared(0).tables[0]->Pull(ids, Table::Unknown::kMake, row.data());
  EXPECT_FALSE(other[0].trained()) << "a pull trains nothing";
  const uint64_t generation = other[0].generation();
  LaneCheckpointReader reader(other[0].state().buckets, RestoreMode::kResume);
  const auto part = checkpoint::PartReader::Open(PartOf(0));
  ASSERT_OK(reader.Read(**part));
  Result<LaneState> restored = std::move(reader).Finish();
  ASSERT_OK(restored);
  EXPECT_EQ(other.rows(), 1U) << "nothing has changed yet";
  other[0].Adopt(*std::move(restored));
  EXPECT_GT(other[0].generation(), generation);
  EXPECT_EQ(other.rows(), 3U);
  EXPECT_FALSE(other[0].trained());
  other.Declare();
  EXPECT_EQ(other.Content(), lanes.Content());
  EXPECT_EQ(other.Open(kLease.Next()), std::vector<uint64_t>{1});
  EXPECT_TRUE(other[0].trained());
}

TEST_F(LaneCheckpointTest, SavesBlocksBeforeRows) {
  Lanes lanes(1);
  lanes.Declare();
  lanes.PutTensor(1);
  lanes.Open(kLease);
  lanes.Push(kLease, 0, Some(random_));
  Begin(lanes, 0);
  EXPECT_EQ(saves_[0]->BlockBytesToSave(), size_t{40'000} * 2 * sizeof(float));
  while (saves_[0]->BlockBytesToSave() > 0) ASSERT_TRUE(SaveSome(0));
  Finish(0);
}

TEST_F(LaneCheckpointTest, FailsOnAFullDisk) {
  FileDescriptor full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  if (!full.valid()) GTEST_SKIP() << "this system has no /dev/full";
  EXPECT_THAT(checkpoint::PartWriter::Begin("/dev/full", {.file = std::move(full)}),
              StatusIs(Code::kResourceExhausted));
}

}  // namespace
}  // namespace edl::ps
