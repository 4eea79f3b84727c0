#include "data/index_store.h"

#include <filesystem>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "data/testing/record_files.h"

namespace edl::data {
namespace {

namespace fs = std::filesystem;

constexpr IndexKey kKey = {.stamp = {.size = 1000, .modified_ns = 7}};

RecordIndex SmallIndex() { return {.count = 3, .entries = {{.record = 0, .offset = 0}}}; }

TEST(IndexStore, KeepsAnIndexBesideTheData) {
  const RecordFolder folder;
  const IndexStore store(folder.path() / "unused");

  EXPECT_EQ(store.Load(folder / "a.csv", kKey), std::nullopt);
  EXPECT_EQ(store.Save(folder / "a.csv", kKey, SmallIndex()), folder.path() / ".a.csv.edlindex");
  EXPECT_FALSE(fs::exists(folder.path() / "unused"));
  EXPECT_EQ(store.Load(folder / "a.csv", kKey), SmallIndex());
}

TEST(IndexStore, KeepsAnIndexInItsFolderIfTheDataIsReadOnly) {
  const RecordFolder folder;
  // Also root cannot replace a directory by a file.
  fs::create_directory(folder.path() / ".a.csv.edlindex");
  const IndexStore store(folder.path() / "job" / "indexes");

  const std::optional<fs::path> place = store.Save(folder / "a.csv", kKey, SmallIndex());

  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->parent_path(), folder.path() / "job" / "indexes");
  EXPECT_EQ(store.Load(folder / "a.csv", kKey), SmallIndex());
  EXPECT_EQ(store.Load(folder / "b.csv", kKey), std::nullopt);
}

TEST(IndexStore, SavesNothingWhereNothingCanBeWritten) {
  const RecordFolder folder;
  fs::create_directory(folder.path() / ".a.csv.edlindex");

  EXPECT_EQ(IndexStore{fs::path()}.Save(folder / "a.csv", kKey, SmallIndex()), std::nullopt);
  const IndexStore below_a_file(folder.Write("file", "x") + "/folder");
  EXPECT_EQ(below_a_file.Save(folder / "a.csv", kKey, SmallIndex()), std::nullopt);
}

TEST(IndexStore, ADamagedOrStaleIndexIsNotUsed) {
  const RecordFolder folder;
  const IndexStore store{fs::path()};
  store.Save(folder / "a.csv", kKey, SmallIndex());
  IndexKey changed = kKey;
  ++changed.stamp.modified_ns;

  EXPECT_EQ(store.Load(folder / "a.csv", changed), std::nullopt);
  folder.Write(".a.csv.edlindex", "damaged");
  EXPECT_EQ(store.Load(folder / "a.csv", kKey), std::nullopt);
  store.Save(folder / "a.csv", kKey, SmallIndex());
  EXPECT_EQ(store.Load(folder / "a.csv", kKey), SmallIndex());
}

}  // namespace
}  // namespace edl::data
