#include "data/record_writer.h"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/testing/status_matchers.h"
#include "data/testing/record_files.h"

namespace edl::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

size_t FilesIn(const RecordFolder& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}

TEST(RecordWriter, TheFileAppearsWhenTheWriterIsClosed) {
  const RecordFolder folder;
  ASSERT_OK_AND_ASSIGN(const auto writer, RecordWriter::Create(folder / "a", {}));
  ASSERT_OK(writer->Write("x"));
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));

  ASSERT_OK(writer->Close());

  EXPECT_THAT(ReadRecords(folder / "a"), IsOkAndHolds(ElementsAre("x")));
  EXPECT_EQ(FilesIn(folder), 1U);
  EXPECT_OK(writer->Close());
  EXPECT_THAT(writer->Write("y"), StatusIs(Code::kFailedPrecondition, HasSubstr("closed")));
}

TEST(RecordWriter, AnAbandonedFileIsRemoved) {
  const RecordFolder folder;
  folder.Write("a", "before");
  {
    ASSERT_OK_AND_ASSIGN(const auto writer, RecordWriter::Create(folder / "a", {}));
    ASSERT_OK(writer->Write("x"));
  }

  EXPECT_THAT(ReadFile(folder / "a"), IsOkAndHolds("before"));
  EXPECT_EQ(FilesIn(folder), 1U);
}

TEST(RecordWriter, WithoutRecordsTheFileIsEmpty) {
  const RecordFolder folder;
  for (const RecordFormat format : {RecordFormat::kRecordIo, RecordFormat::kTfRecord}) {
    ASSERT_OK_AND_ASSIGN(const std::string path, folder.WriteRecords("a", {}, {.format = format}));
    EXPECT_THAT(ReadRecords(path, {.format = format}), IsOkAndHolds(IsEmpty()));
  }
}

TEST(RecordWriter, ARecordThatDoesNotFitIsRefusedAndTheOthersAreWritten) {
  const RecordFolder folder;
  ASSERT_OK_AND_ASSIGN(const auto writer,
                       RecordWriter::Create(folder / "a", {.max_chunk_bytes = 10}));
  ASSERT_OK(writer->Write("123456789"));

  EXPECT_THAT(writer->Write("1234567890"),
              StatusIs(Code::kInvalidArgument, AllOf(HasSubstr("/a"), HasSubstr("10 bytes"))));

  ASSERT_OK(writer->Close());
  EXPECT_THAT(ReadRecords(folder / "a"), IsOkAndHolds(ElementsAre("123456789")));
}

TEST(RecordWriter, OptionsAndPathsAreChecked) {
  const RecordFolder folder;

  EXPECT_THAT(RecordWriter::Create(folder / "a", {.format = RecordFormat::kCsv}).status(),
              StatusIs(Code::kInvalidArgument, HasSubstr("csv")));
  EXPECT_THAT(RecordWriter::Create(folder / "a", {.max_chunk_bytes = 0}).status(),
              StatusIs(Code::kInvalidArgument, HasSubstr("max_chunk_bytes")));
  EXPECT_THAT(RecordWriter::Create(folder / "missing/a", {}).status(),
              StatusIs(Code::kNotFound, HasSubstr("missing/a")));
  EXPECT_THAT(ParseCompression("zip"), StatusIs(Code::kInvalidArgument, HasSubstr("'zip'")));
}

}  // namespace
}  // namespace edl::data
