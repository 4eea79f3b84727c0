#include "data/record_set.h"

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/testing/status_matchers.h"
#include "data/testing/record_files.h"

namespace edl::data {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Result<Strings> Read(RecordSet& set, int64_t first, int64_t end) {
  RecordBatch batch;
  EDL_RETURN_IF_ERROR(set.Read(first, end, batch));
  return StringsOf(batch);
}

void MakeOlder(const std::string& path) {
  fs::last_write_time(path, fs::last_write_time(path) - std::chrono::hours(1));
}

// A file that is large enough for an index on disk.
std::string WriteLarge(const RecordFolder& folder, const std::string& name) {
  std::string content;
  for (int i = 0; i < 100'000; ++i) content += fmt::format("{:09}\n", i);
  return folder.Write(name, content);
}

TEST(RecordSet, NumbersTheRecordsOfAllFiles) {
  const RecordFolder folder;
  folder.Write("b.csv", "3\n4\n");
  folder.Write("a.csv", "0\n1\n2\n");
  folder.Write("aa.csv", "");
  folder.Write("c.csv", "5\n");

  ASSERT_OK_AND_ASSIGN(const auto set, RecordSet::Open(folder.path().string()));

  EXPECT_EQ(set->count(), 6);
  using File = RecordSet::File;
  EXPECT_THAT(set->files(),
              ElementsAre(File{folder / "a.csv", 0, 3}, File{folder / "aa.csv", 3, 0},
                          File{folder / "b.csv", 3, 2}, File{folder / "c.csv", 5, 1}));
  EXPECT_THAT(Read(*set, 0, 6), IsOkAndHolds(ElementsAre("0", "1", "2", "3", "4", "5")));
  EXPECT_THAT(Read(*set, 2, 4), IsOkAndHolds(ElementsAre("2", "3")));
  EXPECT_THAT(Read(*set, 3, 3), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(Read(*set, 6, 6), IsOkAndHolds(IsEmpty()));
}

TEST(RecordSet, ARangeOutsideOfTheRecordsIsAnError) {
  const RecordFolder folder;
  ASSERT_OK_AND_ASSIGN(const auto set, RecordSet::Open(folder.Write("a.csv", "0\n1\n")));

  for (const auto& [first, end] : {std::pair{-1, 1}, {0, 3}, {2, 1}, {3, 3}}) {
    EXPECT_THAT(Read(*set, first, end), StatusIs(Code::kOutOfRange, HasSubstr("2 records")));
  }
}

TEST(RecordSet, ManyFilesAreReadInAnyOrder) {
  const RecordFolder folder;
  for (int i = 0; i < 20; ++i) folder.Write(fmt::format("{:02}.csv", i), fmt::format("{}\n", i));
  ASSERT_OK_AND_ASSIGN(const auto set, RecordSet::Open(folder.path().string()));

  for (int round = 0; round < 3; ++round) {
    for (int i = 19; i >= 0; i -= 1 + round) {
      EXPECT_THAT(Read(*set, i, i + 1), IsOkAndHolds(ElementsAre(std::to_string(i))));
    }
  }
}

TEST(RecordSet, FilesOfOneSetHaveOneFormatAndTheSameColumns) {
  const RecordFolder folder;
  folder.Write("a.csv", "x,y\n");
  folder.Write("b.csv", "x,z\n");
  const std::string path = folder.path().string();

  EXPECT_THAT(RecordSet::Open(path, {.file = {.has_header = true}}).status(),
              StatusIs(Code::kInvalidArgument, AllOf(HasSubstr("b.csv has the columns x, z"),
                                                     HasSubstr("a.csv has x, y"))));
  folder.Write("c.tsv", "1\n");
  EXPECT_THAT(RecordSet::Open(path).status(),
              StatusIs(Code::kInvalidArgument,
                       AllOf(HasSubstr("c.tsv"), HasSubstr("tsv"), HasSubstr("a.csv"))));
  folder.Write("d", "no format");
  EXPECT_THAT(
      RecordSet::Open(folder / "d").status(),
      StatusIs(Code::kInvalidArgument, AllOf(HasSubstr("/d"), HasSubstr("give its format"))));
  ASSERT_OK_AND_ASSIGN(const auto set,
                       RecordSet::Open(folder / "d", {.file = {.format = RecordFormat::kCsv}}));
  EXPECT_EQ(set->count(), 1);
}

TEST(RecordSet, AGzipFileIsRecognised) {
  const RecordFolder folder;

  EXPECT_THAT(
      RecordSet::Open(folder.Write("a.tfrecord.gz", "\x1f\x8b\x08 and more")).status(),
      StatusIs(Code::kUnimplemented, AllOf(HasSubstr("a.tfrecord.gz"), HasSubstr("gunzip"))));
}

TEST(RecordSet, TheIndexIsBuiltOnceAndUsedAgain) {
  const RecordFolder folder;
  const std::string path = WriteLarge(folder, "a.csv");
  ASSERT_OK(RecordSet::Open(path));
  const std::string index = folder / ".a.csv.edlindex";
  ASSERT_OK_AND_ASSIGN(const std::string bytes, ReadFile(index));
  // An index with another count shows that it was used.
  ASSERT_OK_AND_ASSIGN(const FileStamp stamp, StampOf(path));
  const IndexKey key{.format = RecordFormat::kCsv, .stamp = stamp};
  ASSERT_OK_AND_ASSIGN(RecordIndex changed, DecodeIndex(bytes, key));
  EXPECT_EQ(changed.count, 100'000U);
  changed.count = 99'999;
  folder.Write(".a.csv.edlindex", EncodeIndex(changed, key));

  ASSERT_OK_AND_ASSIGN(const auto set, RecordSet::Open(path));

  EXPECT_EQ(set->count(), 99'999);
}

TEST(RecordSet, ADamagedOrStaleIndexIsBuiltAgain) {
  const RecordFolder folder;
  const std::string path = WriteLarge(folder, "a.csv");
  ASSERT_OK(RecordSet::Open(path));
  ASSERT_OK_AND_ASSIGN(const std::string good, ReadFile(folder / ".a.csv.edlindex"));

  folder.Write(".a.csv.edlindex", good.substr(0, good.size() - 3));
  ASSERT_OK_AND_ASSIGN(const auto damaged, RecordSet::Open(path));
  EXPECT_EQ(damaged->count(), 100'000);
  EXPECT_THAT(ReadFile(folder / ".a.csv.edlindex"), IsOkAndHolds(good));

  folder.Write("a.csv", "1\n" + *ReadFile(path));
  ASSERT_OK_AND_ASSIGN(const auto stale, RecordSet::Open(path));
  EXPECT_EQ(stale->count(), 100'001);
}

TEST(RecordSet, SetsThatBuildTheSameIndexAtOnceAgree) {
  const RecordFolder folder;
  const std::string path = WriteLarge(folder, "a.csv");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const auto set = RecordSet::Open(path);
      ASSERT_OK(set);
      EXPECT_EQ((*set)->count(), 100'000);
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 2);
}

TEST(RecordSet, AChangedFileIsAnErrorWithItsPath) {
  const RecordFolder folder;
  const std::string path = folder.Write("a.csv", "0\n1\n");
  ASSERT_OK_AND_ASSIGN(const auto before_open, RecordSet::Open(path));
  ASSERT_OK_AND_ASSIGN(const auto opened, RecordSet::Open(path));
  ASSERT_OK(Read(*opened, 0, 1));

  folder.Write("a.csv", "2\n3\n");
  MakeOlder(path);

  for (RecordSet* set : {before_open.get(), opened.get()}) {
    EXPECT_THAT(Read(*set, 0, 1), StatusIs(Code::kFailedPrecondition,
                                           AllOf(HasSubstr(path), HasSubstr("was changed"))));
  }
}

TEST(RecordSet, ARemovedFileIsAnErrorWithItsPath) {
  const RecordFolder folder;
  const std::string path = folder.Write("a.csv", "0\n1\n");
  ASSERT_OK_AND_ASSIGN(const auto before_open, RecordSet::Open(path));
  ASSERT_OK_AND_ASSIGN(const auto opened, RecordSet::Open(path));
  ASSERT_OK(Read(*opened, 0, 1));

  fs::remove(path);

  EXPECT_THAT(Read(*before_open, 0, 1), StatusIs(Code::kNotFound, HasSubstr(path)));
  EXPECT_THAT(Read(*opened, 1, 2),
              StatusIs(Code::kNotFound, AllOf(HasSubstr(path), HasSubstr("removed"))));
}

TEST(RecordSet, IsReadByManyThreads) {
  const RecordFolder folder;
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_OK(folder.WriteRecords(name, SomeRecords(1000), {.records_per_chunk = 100}));
  }
  ASSERT_OK_AND_ASSIGN(const auto set, RecordSet::Open(folder.path().string()));
  const Strings expected = SomeRecords(1000);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int64_t first = i * 10; first + 50 <= set->count(); first += 330) {
        const auto records = Read(*set, first, first + 50);
        ASSERT_OK(records);
        EXPECT_EQ(records->front(), expected[static_cast<size_t>(first) % 1000]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace edl::data
