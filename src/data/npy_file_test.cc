#include "data/npy_file.h"

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

// A file of version 1.
std::string NpyOf(const std::string& dict, const std::string& content) {
  const auto length = static_cast<uint16_t>(dict.size());
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(length & 0xFF) +
         static_cast<char>(length >> 8) + dict + content;
}

std::string DictOf(const std::string& descr, const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }   \n";
}

TEST(NpyFile, ARecordIsAnElementOfTheFirstAxis) {
  const RecordFolder folder;
  const std::string path = folder.Write("a.npy", NpyOf(DictOf("'<i2'", "(3, 2)"), "aabbccddeeff"));

  ASSERT_OK_AND_ASSIGN(const auto file, RecordFile::Open(path, {}));

  EXPECT_EQ(file->schema().dtype, "<i2");
  EXPECT_THAT(file->schema().record_shape, ElementsAre(2));
  EXPECT_THAT(ReadRecords(*file), IsOkAndHolds(ElementsAre("aabb", "ccdd", "eeff")));
  EXPECT_THAT(ReadRecords(*file, 2), IsOkAndHolds(ElementsAre("aabb", "ccdd", "eeff")));
}

TEST(NpyFile, HasTheSizesOfNumPysTypes) {
  const RecordFolder folder;
  const auto records = [&](const std::string& descr, const std::string& shape,
                           const std::string& content) {
    return ReadRecords(folder.Write("a.npy", NpyOf(DictOf(descr, shape), content)));
  };

  EXPECT_THAT(records("'|S3'", "(2,)", "abcdef"), IsOkAndHolds(ElementsAre("abc", "def")));
  EXPECT_THAT(records("'<U1'", "(1,)", "abcd"), IsOkAndHolds(ElementsAre("abcd")));
  EXPECT_THAT(records("'<M8[ns]'", "(1,)", "abcdefgh"), IsOkAndHolds(ElementsAre("abcdefgh")));
  EXPECT_THAT(records("\"|b1\"", "(2, 1, 1)", "ab"), IsOkAndHolds(ElementsAre("a", "b")));
  EXPECT_THAT(records("'<f8'", "(0, 5)", ""), IsOkAndHolds(IsEmpty()));
}

TEST(NpyFile, RefusesArraysThatItCannotRead) {
  const RecordFolder folder;
  const auto status = [&](const std::string& dict, const std::string& content) {
    return ReadRecords(folder.Write("a.npy", NpyOf(dict, content))).status();
  };

  EXPECT_THAT(status(DictOf("'|O'", "(1,)"), "x"),
              StatusIs(Code::kUnimplemented, HasSubstr("objects")));
  EXPECT_THAT(status(DictOf("[('a', '<f4')]", "(1,)"), "abcd"),
              StatusIs(Code::kUnimplemented, HasSubstr("named fields")));
  EXPECT_THAT(status(DictOf("'<f4'", "()"), "abcd"),
              StatusIs(Code::kUnimplemented, HasSubstr("without an axis")));
  EXPECT_THAT(status("{'descr': '<f4', 'fortran_order': True, 'shape': (1,)}", "abcd"),
              StatusIs(Code::kUnimplemented, HasSubstr("Fortran")));
  EXPECT_THAT(status(DictOf("'<f4'", "(5, 0)"), ""),
              StatusIs(Code::kUnimplemented, HasSubstr("(5, 0)")));
}

TEST(NpyFile, AMalformedHeaderIsAnErrorWithTheFile) {
  const RecordFolder folder;
  for (const std::string& dict :
       {DictOf("'<f'", "(1,)"), DictOf("'<f4", "(1,)"), DictOf("'<f4'", "(1"),
        DictOf("'<f4'", "(-1,)"), DictOf("4", "(1,)"), std::string("{}"), std::string("{'descr'"),
        DictOf("'<f4'", "(9223372036854775807, 9223372036854775807)"),
        DictOf("'<f4'", "(1, 99999999999999999999)"), DictOf("'<f4'", "(1,)") + "x"}) {
    EXPECT_THAT(ReadRecords(folder.Write("a.npy", NpyOf(dict, "abcd"))),
                StatusIs(Code::kDataLoss, HasSubstr("a.npy at offset")))
        << dict;
  }
  EXPECT_THAT(ReadRecords(folder.Write("b.npy", "no array")),
              StatusIs(Code::kDataLoss, HasSubstr("b.npy at offset 0")));
}

TEST(NpyFile, AFileOfAnotherSizeIsDamaged) {
  const RecordFolder folder;

  EXPECT_THAT(ReadRecords(folder.Write("a.npy", NpyOf(DictOf("'<f4'", "(2,)"), "abcdefg"))),
              StatusIs(Code::kDataLoss, AllOf(HasSubstr("a.npy at offset"), HasSubstr("2 records"),
                                              HasSubstr("7 bytes"))));
}

}  // namespace
}  // namespace edl::data
