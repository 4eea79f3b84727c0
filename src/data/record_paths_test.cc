#include "data/record_paths.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "data/testing/record_files.h"

namespace edl::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(FindRecordFiles, SortsTheFilesOfADirectoryAndSkipsOthers) {
  const RecordFolder folder;
  for (const char* name : {"b", "a-10", "a-2", ".hidden", ".b.edlindex", "_SUCCESS"}) {
    folder.Write(name, "x");
  }
  std::filesystem::create_directory(folder.path() / "more");

  EXPECT_THAT(FindRecordFiles(folder.path().string()),
              IsOkAndHolds(ElementsAre(folder / "a-10", folder / "a-2", folder / "b")));
  EXPECT_THAT(FindRecordFiles(folder / "a-*"),
              IsOkAndHolds(ElementsAre(folder / "a-10", folder / "a-2")));
  EXPECT_THAT(FindRecordFiles(folder / "b"), IsOkAndHolds(ElementsAre(folder / "b")));
}

TEST(FindRecordFiles, AFileMayHaveTheNameOfAPattern) {
  const RecordFolder folder;
  folder.Write("a[1]", "x");

  EXPECT_THAT(FindRecordFiles(folder / "a[1]"), IsOkAndHolds(ElementsAre(folder / "a[1]")));
}

TEST(FindRecordFiles, WithoutAFileTheErrorHasThePath) {
  const RecordFolder folder;
  folder.Write("_SUCCESS", "");

  EXPECT_THAT(FindRecordFiles(folder.path().string()),
              StatusIs(Code::kNotFound,
                       AllOf(HasSubstr(folder.path().string()), HasSubstr("has no record files"))));
  EXPECT_THAT(FindRecordFiles(folder / "missing"),
              StatusIs(Code::kNotFound, HasSubstr(folder / "missing")));
  EXPECT_THAT(FindRecordFiles(folder / "*.csv"),
              StatusIs(Code::kNotFound, AllOf(HasSubstr("pattern"), HasSubstr(folder / "*.csv"))));
}

}  // namespace
}  // namespace edl::data
