#include "job/manifest.h"

#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace edl::job {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ManifestTest : public testing::Test {
 protected:
  ManifestTest() { fs::create_directories(folder_); }
  ~ManifestTest() override { fs::remove_all(folder_); }

  void Write(const std::string& file, const std::string& content) const {
    std::ofstream(folder_ / file) << content;
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / fmt::format("manifest-{}", getpid());
};

TEST_F(ManifestTest, IsReadAsItWasWritten) {
  Write("a", "12345");
  Write("b", "");
  const Manifest manifest{.parts = {{.file = "a", .bytes = 5}, {.file = "b", .bytes = 0}}};
  ASSERT_EQ(WriteManifest(folder_, manifest), Ok());
  const auto read = ReadManifest(folder_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, manifest);
}

TEST_F(ManifestTest, KeepsWhatAMasterSaysOfIt) {
  Manifest manifest{.ps_epoch = 3, .version = 70};
  manifest.covered.ledger = UINT64_MAX;
  manifest.covered.datasets[1].generation = 2;
  manifest.covered.datasets[1].shards[4].AddRange({0, 6});
  ASSERT_EQ(WriteManifest(folder_, manifest), Ok());
  const auto read = ReadManifest(folder_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, manifest);
}

TEST_F(ManifestTest, IsWhatMakesAFolderACheckpoint) {
  EXPECT_EQ(ReadManifest(folder_).status().code(), Code::kNotFound);
}

TEST_F(ManifestTest, NoticesAPartThatIsMissingOrCut) {
  Write("a", "12345");
  ASSERT_EQ(WriteManifest(folder_, {.parts = {{.file = "a", .bytes = 5}}}), Ok());
  Write("a", "1234");
  EXPECT_THAT(ReadManifest(folder_).status().message(), HasSubstr("has 4 bytes, and not 5"));
  fs::remove(folder_ / "a");
  EXPECT_EQ(ReadManifest(folder_).status().code(), Code::kDataLoss);
}

TEST_F(ManifestTest, IsRefusedWhenItIsNone) {
  for (const char* text :
       {"", "[]", "{}", R"({"format": 2, "parts": []})", R"({"format": 1})",
        R"({"format": 1, "parts": [1]})", R"({"format": 1, "parts": [{"file": "a"}]})",
        R"({"format": 1, "parts": [{"file": "../a", "bytes": 1}]})",
        R"({"format": 1, "parts": [{"file": "a", "bytes": -1}]})"}) {
    Write("manifest.json", text);
    EXPECT_EQ(ReadManifest(folder_).status().code(), Code::kDataLoss) << text;
  }
}

}  // namespace
}  // namespace edl::job
