#include "data/csv_file.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "data/testing/record_files.h"

namespace edl::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(CsvFile, ARecordIsALineWithoutItsEnd) {
  const RecordFolder folder;

  EXPECT_THAT(ReadRecords(folder.Write("a.csv", "1,2\r\n3,4\n\n5,6")),
              IsOkAndHolds(ElementsAre("1,2", "3,4", "5,6")));
  EXPECT_THAT(ReadRecords(folder.Write("empty.csv", "")), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(ReadRecords(folder.Write("mark.csv",
                                       "\xEF\xBB\xBF"
                                       "1,2\n")),
              IsOkAndHolds(ElementsAre("1,2")));
}

TEST(CsvFile, AQuotedFieldMayContainLineEndsAndQuotes) {
  const RecordFolder folder;

  EXPECT_THAT(ReadRecords(folder.Write("a.csv", "1,\"two\nlines\",\"a \"\"b\"\"\n\"\n2,x\"y,z\n")),
              IsOkAndHolds(ElementsAre("1,\"two\nlines\",\"a \"\"b\"\"\n\"", "2,x\"y,z")));
  EXPECT_THAT(ReadRecords(folder.Write("end.csv", "1,\"a\"")),
              IsOkAndHolds(ElementsAre("1,\"a\"")));
}

TEST(CsvFile, TabsSeparateTheFieldsOfTsv) {
  const RecordFolder folder;

  EXPECT_THAT(ReadRecords(folder.Write("a.tsv", "1,\"x\t\"two\nlines\"\n2\n")),
              IsOkAndHolds(ElementsAre("1,\"x\t\"two\nlines\"", "2")));
}

TEST(CsvFile, TheHeaderNamesTheColumns) {
  const RecordFolder folder;
  const std::string path = folder.Write("a.csv", "age,\"work \"\"class\"\"\",\n1,2,3\n");

  ASSERT_OK_AND_ASSIGN(const auto file, RecordFile::Open(path, {.has_header = true}));

  EXPECT_THAT(file->schema().column_names, ElementsAre("age", "work \"class\"", ""));
  EXPECT_THAT(ReadRecords(*file), IsOkAndHolds(ElementsAre("1,2,3")));
}

TEST(CsvFile, AMissingHeaderIsAnError) {
  const RecordFolder folder;

  EXPECT_THAT(ReadRecords(folder.Write("a.csv", "\n"), {.has_header = true}),
              StatusIs(Code::kDataLoss, HasSubstr("a.csv at offset 0")));
}

TEST(CsvFile, AnOpenQuoteIsAnErrorWithTheOffsetOfItsLine) {
  const RecordFolder folder;

  EXPECT_THAT(
      ReadRecords(folder.Write("a.csv", "1,2\n3,\"4\n5,6\n")),
      StatusIs(Code::kDataLoss, AllOf(HasSubstr("a.csv at offset 4"), HasSubstr("not closed"))));
}

TEST(CsvFile, LinesLongerThanTheBufferAreRead) {
  const RecordFolder folder;
  const std::string huge(3 << 20, 'x');
  const std::string quoted = "\"" + std::string(3 << 20, '\n') + "\"";

  EXPECT_THAT(ReadRecords(folder.Write("a.csv", "1\n" + huge + "\n" + quoted + "\n2\n")),
              IsOkAndHolds(ElementsAre("1", huge, quoted, "2")));
}

TEST(CsvFile, AnyRangeGivesTheRecordsOfTheWhole) {
  const RecordFolder folder;
  std::string content;
  Strings expected;
  for (int i = 0; i < 30'000; ++i) {
    expected.push_back(i % 3 == 0 ? fmt::format("{},\"a\nb, {}\"", i, i) : fmt::format("{},x", i));
    content += expected.back() + (i % 2 == 0 ? "\n" : "\r\n");
  }
  const std::string path = folder.Write("a.csv", content);

  EXPECT_THAT(ReadRecords(path), IsOkAndHolds(expected));
  EXPECT_THAT(ReadRecords(path, {}, 7), IsOkAndHolds(expected));
  ASSERT_OK_AND_ASSIGN(const auto file, RecordFile::Open(path, {}));
  ASSERT_OK_AND_ASSIGN(const RecordIndex index, file->BuildIndex());
  EXPECT_GT(index.entries.size(), 1U);
  for (const uint64_t record : {29'999, 0, 15'000, 14'999, 3}) {
    RecordBatch batch;
    ASSERT_OK(file->Read(index, record, record + 1, batch));
    EXPECT_THAT(StringsOf(batch), ElementsAre(expected[record]));
  }
}

}  // namespace
}  // namespace edl::data
