#include "data/recordio_file.h"

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

// Written by the Go library: "", "record 1 ", "record 2 " and "record 3 ".
constexpr std::string_view kGoPlain =
    "04030201330740f6000000002b0000000400000000000000090000007265636f7264203120090000007265636f7264"
    "203220090000007265636f7264203320";
constexpr std::string_view kGoSnappy =
    "0403020174743d92010000006d00000004000000ff060000734e6150705901080000a67b113a0000000001080000a5"
    "b1b5a709000000010d0000f95132477265636f726420312001080000a5b1b5a709000000010d0000c6f91f98726563"
    "6f726420322001080000a5b1b5a709000000010d00008314f6677265636f7264203320";
constexpr std::string_view kGoGzip =
    "0403020157246a5f0200000030000000040000001f8b08000000000000ff62606060e0646060284a4dce2f4a513054"
    "40e21821738c1500010000ffff330740f62b000000";
// In the layout of the older Python package: "one", "" and "three".
constexpr std::string_view kPythonPlain =
    "0403020103000000bf53906e0100000014000000030000006f6e6500000000050000007468726565";
constexpr std::string_view kPythonSnappy =
    "04030201030000007f014c560200000016000000144c030000006f6e6500000000050000007468726565";

TEST(RecordIoFile, ReadsWhatTheGoLibraryWrote) {
  const RecordFolder folder;
  for (const std::string_view hex : {kGoPlain, kGoSnappy, kGoGzip}) {
    EXPECT_THAT(ReadRecords(folder.Write("data-00000", FromHex(hex))),
                IsOkAndHolds(ElementsAre("", "record 1 ", "record 2 ", "record 3 ")))
        << hex;
  }
}

TEST(RecordIoFile, ReadsTheLayoutOfTheOlderPythonPackage) {
  const RecordFolder folder;
  for (const std::string_view hex : {kPythonPlain, kPythonSnappy}) {
    EXPECT_THAT(ReadRecords(folder.Write("data-00000", FromHex(hex))),
                IsOkAndHolds(ElementsAre("one", "", "three")))
        << hex;
  }
}

TEST(RecordIoFile, TheWriterWritesTheBytesOfTheGoLibrary) {
  const RecordFolder folder;
  const Strings records = {"", "record 1 ", "record 2 ", "record 3 "};

  ASSERT_OK_AND_ASSIGN(const std::string path,
                       folder.WriteRecords("a", records, {.compression = Compression::kNone}));

  EXPECT_EQ(*ReadFile(path), FromHex(kGoPlain));
}

TEST(RecordIoFile, AFileWithoutBytesHasNoRecords) {
  const RecordFolder folder;

  EXPECT_THAT(ReadRecords(folder.Write("data-00000", "")), IsOkAndHolds(IsEmpty()));
}

class RecordIoCompressions : public testing::TestWithParam<Compression> {};
INSTANTIATE_TEST_SUITE_P(RecordIoFile, RecordIoCompressions,
                         testing::Values(Compression::kNone, Compression::kSnappy,
                                         Compression::kGzip));

TEST_P(RecordIoCompressions, AnyRangeGivesTheRecordsOfTheWhole) {
  const RecordFolder folder;
  const Strings expected = SomeRecords(20'000);
  ASSERT_OK_AND_ASSIGN(
      const std::string path,
      folder.WriteRecords("a", expected, {.compression = GetParam(), .max_chunk_bytes = 5000}));

  EXPECT_THAT(ReadRecords(path), IsOkAndHolds(expected));
  EXPECT_THAT(ReadRecords(path, {}, 7), IsOkAndHolds(expected));
  ASSERT_OK_AND_ASSIGN(const auto file, RecordFile::Open(path, {}));
  ASSERT_OK_AND_ASSIGN(const RecordIndex index, file->BuildIndex());
  for (const uint64_t record : {19'999, 0, 10'000, 9'999, 1}) {
    RecordBatch batch;
    ASSERT_OK(file->Read(index, record, record + 1, batch));
    EXPECT_THAT(StringsOf(batch), ElementsAre(expected[record]));
  }
}

TEST(RecordIoFile, ConsecutiveRangesOfAChunkDecompressItOnce) {
  const RecordFolder folder;
  ASSERT_OK_AND_ASSIGN(const std::string path,
                       folder.WriteRecords("a", SomeRecords(100), {.records_per_chunk = 50}));
  ASSERT_OK_AND_ASSIGN(InputFile input, InputFile::Open(path));
  ASSERT_OK_AND_ASSIGN(const auto file, RecordIoFile::Open(std::move(input)));

  ASSERT_OK(ReadRecords(*file, 10));

  EXPECT_EQ(file->chunks_decoded(), 2U);
}

TEST(RecordIoFile, ADamagedChunkIsReportedWithFileAndOffset) {
  const RecordFolder folder;
  const std::string chunk = FromHex(kGoSnappy);
  std::string content = chunk + chunk;
  content[chunk.size() + 30] ^= 1;
  const std::string path = folder.Write("a", content);

  EXPECT_THAT(ReadRecords(path),
              StatusIs(Code::kDataLoss,
                       AllOf(HasSubstr(fmt::format("{} at offset {}: ", path, chunk.size())),
                             HasSubstr("checksum"))));
}

TEST(RecordIoFile, EveryDamagedByteIsDetected) {
  const RecordFolder folder;
  for (const std::string_view hex : {kGoPlain, kGoSnappy, kGoGzip, kPythonPlain, kPythonSnappy}) {
    const std::string chunk = FromHex(hex);
    for (size_t at = 0; at < chunk.size(); ++at) {
      std::string damaged = chunk;
      damaged[at] ^= 1;
      EXPECT_THAT(ReadRecords(folder.Write("a", damaged), {.format = RecordFormat::kRecordIo}),
                  StatusIs(Code::kDataLoss, HasSubstr("/a at offset ")))
          << at << " of " << hex;
    }
  }
}

TEST(RecordIoFile, AFileThatEndsInAChunkIsDamaged) {
  const RecordFolder folder;
  const std::string chunk = FromHex(kGoPlain);
  for (size_t size = 1; size < chunk.size(); ++size) {
    EXPECT_THAT(ReadRecords(folder.Write("a", chunk + chunk.substr(0, size))),
                StatusIs(Code::kDataLoss, HasSubstr(fmt::format("offset {}", chunk.size()))))
        << size;
  }
}

}  // namespace
}  // namespace edl::data
