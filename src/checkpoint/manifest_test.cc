#include "checkpoint/manifest.h"

#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/testing/status_matchers.h"
#include "wire/placement.h"

namespace edl::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ManifestTest : public testing::Test {
 protected:
  ManifestTest() { fs::create_directories(folder_); }
  ~ManifestTest() override { fs::remove_all(folder_); }

  void Write(const std::string& file, const std::string& content) const {
    std::ofstream(folder_ / file) << content;
  }

  // A whole checkpoint: two parts.
  Manifest WriteTwo() const {
    Write("a", "12345");
    Write("b", "");
    Manifest manifest{
        .parts = {{.file = "b", .bytes = 0, .first_bucket = 512, .end_bucket = wire::kBuckets},
                  {.file = "a", .bytes = 5, .first_bucket = 0, .end_bucket = 512}}};
    EXPECT_OK(WriteManifest(folder_, manifest));
    return manifest;
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / fmt::format("manifest-{}", getpid());
};

TEST_F(ManifestTest, IsReadAsItWasWritten) {
  const Manifest manifest = WriteTwo();
  const auto read = ReadManifest(folder_);
  ASSERT_OK(read);
  EXPECT_EQ(*read, manifest);
}

TEST_F(ManifestTest, KeepsEpochVersionAndCoveredShards) {
  Manifest manifest = WriteTwo();
  manifest.ps_epoch = job::PsEpoch(3);
  manifest.version = 70;
  manifest.covered.ledger = job::LedgerId(UINT64_MAX);
  manifest.covered.datasets[job::DatasetId(1)].generation = 2;
  manifest.covered.datasets[job::DatasetId(1)].shards[4].AddRange({0, 6});
  ASSERT_OK(WriteManifest(folder_, manifest));
  const auto read = ReadManifest(folder_);
  ASSERT_OK(read);
  EXPECT_EQ(*read, manifest);
}

TEST_F(ManifestTest, IsRequiredInACheckpointFolder) {
  EXPECT_THAT(ReadManifest(folder_), StatusIs(Code::kNotFound));
}

TEST_F(ManifestTest, IsRejectedWhenAPartIsMissingOrTruncated) {
  WriteTwo();
  Write("a", "1234");
  EXPECT_THAT(ReadManifest(folder_).status().message(), HasSubstr("has 4 bytes, expected 5"));
  fs::remove(folder_ / "a");
  EXPECT_THAT(ReadManifest(folder_), StatusIs(Code::kDataLoss));
}

// Otherwise a restore would silently lack the parameters of some buckets.
TEST_F(ManifestTest, MustHaveEveryBucketOnce) {
  const Manifest whole = WriteTwo();
  Manifest half = whole;
  half.parts.pop_back();
  ASSERT_OK(WriteManifest(folder_, half));
  EXPECT_THAT(ReadManifest(folder_), StatusIs(Code::kDataLoss));
  half.parts = {whole.parts[1]};
  ASSERT_OK(WriteManifest(folder_, half));
  EXPECT_THAT(ReadManifest(folder_).status().message(), HasSubstr("512 of 1024 buckets"));
  Manifest twice = whole;
  twice.parts.push_back(twice.parts[0]);
  ASSERT_OK(WriteManifest(folder_, twice));
  EXPECT_THAT(ReadManifest(folder_), StatusIs(Code::kDataLoss));
  ASSERT_OK(WriteManifest(folder_, {}));
  EXPECT_THAT(ReadManifest(folder_), StatusIs(Code::kDataLoss));
}

TEST_F(ManifestTest, OfAnotherFormatIsRejectedByItsNumber) {
  Write("manifest.json", R"({"format": 2, "parts": []})");
  const Status status = ReadManifest(folder_).status();
  EXPECT_THAT(status, StatusIs(Code::kFailedPrecondition));
  EXPECT_THAT(status.message(), HasSubstr("has format 2, and this program reads format 3"));
}

TEST_F(ManifestTest, NamesThePartsThatSomeBucketsNeed) {
  const Manifest manifest = WriteTwo();
  EXPECT_THAT(manifest.PathsFor(folder_, 0, 512), ElementsAre(folder_ / "a"));
  EXPECT_THAT(manifest.PathsFor(folder_, 512, 513), ElementsAre(folder_ / "b"));
  EXPECT_THAT(manifest.PathsFor(folder_, 511, 513), SizeIs(2));
}

// An error of the mount does not mean that the checkpoint is damaged: a part is missing only if its
// file does not exist.
TEST_F(ManifestTest, IsNotDamagedByAFileThatCannotBeLookedAt) {
  WriteTwo();
  fs::remove(folder_ / "a");
  fs::create_symlink("a", folder_ / "a");  // ELOOP
  EXPECT_THAT(ReadManifest(folder_), StatusIs(Code::kUnknown));
  fs::remove(folder_ / "manifest.json");
  fs::create_symlink("manifest.json", folder_ / "manifest.json");
  EXPECT_THAT(ReadManifest(folder_), StatusIs(Code::kUnknown));
  EXPECT_THAT(HasManifest(folder_), StatusIs(Code::kUnknown));
}

TEST_F(ManifestTest, IsRejectedWhenItIsInvalid) {
  for (const char* text :
       {"", "[]", "{}", R"({"format": "3", "parts": []})", R"({"format": 3})",
        R"({"format": 3, "parts": [1]})", R"({"format": 3, "parts": [{"file": "a"}]})",
        R"({"format": 3, "parts": [{"file": "../a", "bytes": 1}]})",
        R"({"format": 3, "parts": [{"file": "a", "bytes": -1}]})",
        R"({"format": 3, "parts": [{"file": "a", "bytes": 0}]})"}) {
    Write("manifest.json", text);
    EXPECT_THAT(ReadManifest(folder_), StatusIs(Code::kDataLoss)) << text;
  }
}

}  // namespace
}  // namespace edl::checkpoint
