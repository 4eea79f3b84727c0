#include "data/tfrecord_file.h"

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

constexpr RecordWriterOptions kTfRecord = {.format = RecordFormat::kTfRecord};

// Written by TensorFlow 2.15: the records "a" and "".
constexpr std::string_view kByTensorFlow(
    "\x01\x00\x00\x00\x00\x00\x00\x00\x01\x75\xDE\x41"
    "a"
    "\x78\x6E\xE4\x28"
    "\x00\x00\x00\x00\x00\x00\x00\x00\x29\x03\x98\x07"
    "\xD8\xEA\x82\xA2",
    33);

TEST(TfRecordFile, ReadsWhatTensorFlowWrote) {
  const RecordFolder folder;

  EXPECT_THAT(ReadRecords(folder.Write("part-0", kByTensorFlow)),
              IsOkAndHolds(ElementsAre("a", "")));
}

TEST(TfRecordFile, TheWriterWritesTheSameBytes) {
  const RecordFolder folder;

  ASSERT_OK_AND_ASSIGN(const std::string path, folder.WriteRecords("a", {"a", ""}, kTfRecord));

  EXPECT_EQ(*ReadFile(path), kByTensorFlow);
}

TEST(TfRecordFile, AnyRangeGivesTheRecordsOfTheWhole) {
  const RecordFolder folder;
  Strings expected = SomeRecords(20'000);
  expected[10'000] = std::string(5 << 20, 'x');
  ASSERT_OK_AND_ASSIGN(const std::string path, folder.WriteRecords("a", expected, kTfRecord));

  EXPECT_THAT(ReadRecords(path), IsOkAndHolds(expected));
  EXPECT_THAT(ReadRecords(path, {}, 3), IsOkAndHolds(expected));
  ASSERT_OK_AND_ASSIGN(const auto file, RecordFile::Open(path, {}));
  ASSERT_OK_AND_ASSIGN(const RecordIndex index, file->BuildIndex());
  for (const uint64_t record : {19'999, 10'000, 0, 9'999}) {
    RecordBatch batch;
    ASSERT_OK(file->Read(index, record, record + 1, batch));
    EXPECT_THAT(StringsOf(batch), ElementsAre(expected[record]));
  }
}

TEST(TfRecordFile, DamageIsReportedWithFileAndOffset) {
  const RecordFolder folder;
  const auto damaged = [&](size_t at) {
    std::string content(kByTensorFlow);
    content[at] ^= 1;
    return ReadRecords(folder.Write("a.tfrecord", content));
  };

  EXPECT_THAT(damaged(0), StatusIs(Code::kDataLoss, HasSubstr("a.tfrecord at offset 0: ")));
  EXPECT_THAT(damaged(12), StatusIs(Code::kDataLoss, AllOf(HasSubstr("a.tfrecord at offset 0: "),
                                                           HasSubstr("record 0"))));
  EXPECT_THAT(damaged(25), StatusIs(Code::kDataLoss, HasSubstr("a.tfrecord at offset 17: ")));
}

TEST(TfRecordFile, AFileThatEndsInARecordIsDamaged) {
  const RecordFolder folder;
  for (const size_t size : {1, 11, 12, 16, 18, 30}) {
    EXPECT_THAT(
        ReadRecords(folder.Write("a.tfrecord", kByTensorFlow.substr(0, size))),
        StatusIs(Code::kDataLoss, HasSubstr(size < 17 ? "at offset 0: " : "at offset 17: ")))
        << size;
  }
}

}  // namespace
}  // namespace edl::data
