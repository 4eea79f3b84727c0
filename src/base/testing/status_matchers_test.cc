#include "base/testing/status_matchers.h"

#include <memory>
#include <string>

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

namespace edl {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointee;

Result<int> Half(int number) {
  if (number % 2 != 0) return InvalidArgument("{} is odd", number);
  return number / 2;
}

template <typename Value, typename Matcher>
std::string Explain(const Value& value, const Matcher& matcher) {
  return ::testing::PrintToString(value) + " / " +
         ::testing::DescribeMatcher<const Value&>(matcher);
}

TEST(StatusMatchers, MatchStatusesAndResults) {
  EXPECT_THAT(Ok(), IsOk());
  EXPECT_THAT(Half(4), IsOk());
  EXPECT_THAT(Half(3), Not(IsOk()));
  EXPECT_THAT(Half(4), IsOkAndHolds(2));
  EXPECT_THAT(Half(4), Not(IsOkAndHolds(3)));
  EXPECT_THAT(Half(3), Not(IsOkAndHolds(1)));
  EXPECT_THAT(Half(3), StatusIs(Code::kInvalidArgument));
  EXPECT_THAT(Half(3), StatusIs(Code::kInvalidArgument, "3 is odd"));
  EXPECT_THAT(Half(3), Not(StatusIs(Code::kInvalidArgument, HasSubstr("even"))));
  EXPECT_THAT(NotFound("x"), StatusIs(AnyOf(Code::kAborted, Code::kNotFound)));
  EXPECT_THAT(Half(4), Not(StatusIs(Code::kInvalidArgument)));
}

TEST(StatusMatchers, MatchValuesThatCannotBeCopied) {
  EXPECT_THAT(Result<std::unique_ptr<int>>(std::make_unique<int>(7)), IsOkAndHolds(Pointee(7)));
}

TEST(StatusMatchers, AssignTheValue) {
  ASSERT_OK_AND_ASSIGN(const int half, Half(4));

  EXPECT_EQ(half, 2);
}

TEST(StatusMatchers, PrintCodeAndMessageOnFailure) {
  EXPECT_NONFATAL_FAILURE(EXPECT_OK(Half(3)), "INVALID_ARGUMENT: 3 is odd");
  EXPECT_FATAL_FAILURE(ASSERT_OK(NotFound("no such file")), "NOT_FOUND: no such file");
  EXPECT_EQ(Explain(Half(4), IsOkAndHolds(3)),
            "OK: 2 / is OK and holds a value that is equal to 3");
  EXPECT_EQ(Explain(Half(3), StatusIs(Code::kNotFound)),
            "INVALID_ARGUMENT: 3 is odd / has a code that is equal to NOT_FOUND and a message that "
            "is anything");
}

}  // namespace
}  // namespace edl
