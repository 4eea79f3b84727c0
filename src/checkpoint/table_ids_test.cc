#include "checkpoint/table_ids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "base/testing/temporary_folder.h"
#include "checkpoint/manifest.h"
#include "checkpoint/part_file.h"

namespace edl::checkpoint {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

Chunk ChunkOf(ChunkKind kind, uint32_t index, uint64_t records, const std::string& bytes) {
  return {.kind = kind, .index = index, .records = records, .content = wire::BufferOf(bytes)};
}

// Rows of 24 bytes: the id, and 16 bytes that do not matter.
std::string RowsOf(const std::vector<int64_t>& ids) {
  std::string bytes;
  for (const int64_t id : ids) {
    bytes.append(reinterpret_cast<const char*>(&id), sizeof(id));
    bytes.append(16, 'x');
  }
  return bytes;
}

class TableIdsTest : public ::testing::Test {
 protected:
  // Writes a checkpoint with the tables "users" and "items" and one part for each list of rows.
  std::filesystem::path Write(const std::string& name, const std::vector<std::string>& users_rows) {
    const std::filesystem::path folder = folder_.path() / name;
    std::filesystem::create_directories(folder);
    Manifest manifest;
    for (size_t i = 0; i < users_rows.size(); ++i) {
      const std::string file = "part-" + std::to_string(i);
      auto writer = PartWriter::Create(folder / file).value();
      EXPECT_OK(writer->Write(
          ChunkOf(ChunkKind::kHead, 0, 0,
                  R"({"parameters":{"tables":[{"name":"items"},{"name":"users"}]}})")));
      EXPECT_OK(writer->Write(ChunkOf(ChunkKind::kRows, 0, 1, RowsOf({999}))));
      EXPECT_OK(
          writer->Write(ChunkOf(ChunkKind::kRows, 1, users_rows[i].size() / 24, users_rows[i])));
      const uint64_t bytes = writer->Finish().value();
      manifest.parts.push_back(
          {file, bytes, 1024 * i / users_rows.size(), 1024 * (i + 1) / users_rows.size()});
    }
    EXPECT_OK(WriteManifest(folder, manifest));
    return folder;
  }

  TemporaryFolder folder_;
};

TEST_F(TableIdsTest, ReadsTheIdsOfAllParts) {
  const auto folder = Write("version-1.00c0ffee00c0ffee.1", {RowsOf({1, -7}), RowsOf({5})});
  EXPECT_THAT(ReadTableIds(folder, "users").value(), UnorderedElementsAre(1, -7, 5));
}

TEST_F(TableIdsTest, NamesATableThatTheCheckpointLacks) {
  const auto folder = Write("version-1.00c0ffee00c0ffee.1", {RowsOf({1})});
  EXPECT_THAT(ReadTableIds(folder, "words"), StatusIs(Code::kNotFound, HasSubstr("'words'")));
}

TEST_F(TableIdsTest, RejectsRowsThatDoNotFillTheirChunk) {
  const auto folder = Write("version-1.00c0ffee00c0ffee.1", {RowsOf({1, 2}) + "rest"});
  EXPECT_THAT(ReadTableIds(folder, "users"), StatusIs(Code::kDataLoss, HasSubstr("2 rows")));
}

TEST_F(TableIdsTest, FindsTheNewestCompleteCheckpoint) {
  Write("version-9.00c0ffee00c0ffee.3", {RowsOf({1})});
  const auto newest = Write("version-10.00c0ffee00c0ffee.4", {RowsOf({1})});
  std::filesystem::create_directories(folder_.path() / "version-11.00c0ffee00c0ffee.5");
  EXPECT_EQ(NewestCheckpoint(folder_.path()).value(), newest);
}

TEST_F(TableIdsTest, SaysThatThereIsNoCheckpoint) {
  EXPECT_THAT(NewestCheckpoint(folder_.path()),
              StatusIs(Code::kNotFound, HasSubstr("no complete checkpoint")));
  EXPECT_THAT(NewestCheckpoint(folder_.path() / "none"),
              StatusIs(Code::kNotFound, HasSubstr("cannot list")));
}

}  // namespace
}  // namespace edl::checkpoint
