#include "data/record_index.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::data {
namespace {

using Entry = RecordIndex::Entry;

constexpr IndexKey kKey = {.format = RecordFormat::kCsv,
                           .stamp = {.size = uint64_t{1} << 40, .modified_ns = 1'700'000'000}};

RecordIndex SomeIndex() {
  RecordIndex index;
  for (uint64_t record = 0; record < 100; ++record) index.Add(record, record * 100'000);
  index.count = 100;
  return index;
}

TEST(RecordIndex, HasOneEntryForEachPiece) {
  const RecordIndex index = SomeIndex();

  ASSERT_EQ(index.entries.size(), 34U);
  EXPECT_EQ(index.entries[1], (Entry{.record = 3, .offset = 300'000}));
}

TEST(RecordIndex, FindsTheEntryBeforeARecord) {
  const RecordIndex index = SomeIndex();

  EXPECT_EQ(index.Before(0).record, 0U);
  EXPECT_EQ(index.Before(2).record, 0U);
  EXPECT_EQ(index.Before(3).record, 3U);
  EXPECT_EQ(index.Before(99).record, 99U);
}

TEST(RecordIndex, IsTheSameAfterItWasStored) {
  EXPECT_THAT(DecodeIndex(EncodeIndex(SomeIndex(), kKey), kKey), IsOkAndHolds(SomeIndex()));
  EXPECT_THAT(DecodeIndex(EncodeIndex({}, kKey), kKey), IsOkAndHolds(RecordIndex()));
}

TEST(RecordIndex, OfAnotherFileIsStale) {
  const std::string bytes = EncodeIndex(SomeIndex(), kKey);
  IndexKey size = kKey;
  ++size.stamp.size;
  IndexKey modified = kKey;
  ++modified.stamp.modified_ns;
  IndexKey header = kKey;
  header.has_header = true;
  IndexKey format = kKey;
  format.format = RecordFormat::kTsv;
  for (const IndexKey& key : {size, modified, header, format}) {
    EXPECT_THAT(DecodeIndex(bytes, key), StatusIs(Code::kFailedPrecondition));
  }
}

TEST(RecordIndex, DamageIsDetected) {
  const std::string bytes = EncodeIndex(SomeIndex(), kKey);
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] ^= 1;
    EXPECT_THAT(DecodeIndex(damaged, kKey), StatusIs(Code::kDataLoss)) << at;
    EXPECT_THAT(DecodeIndex(bytes.substr(0, at), kKey), StatusIs(Code::kDataLoss)) << at;
  }
}

TEST(RecordIndex, EntriesOutsideOfTheFileAreRejected) {
  RecordIndex behind = SomeIndex();
  behind.entries.back().offset = kKey.stamp.size;
  RecordIndex falling = SomeIndex();
  falling.entries[5].offset = 1;
  RecordIndex few = SomeIndex();
  few.count = 99;
  RecordIndex late = SomeIndex();
  late.entries.erase(late.entries.begin());
  RecordIndex none;
  none.count = 1;
  for (const RecordIndex& wrong : {behind, falling, few, late, none}) {
    EXPECT_THAT(DecodeIndex(EncodeIndex(wrong, kKey), kKey), StatusIs(Code::kDataLoss));
  }
}

}  // namespace
}  // namespace edl::data
