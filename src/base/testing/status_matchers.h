#pragma once

#include <ostream>
#include <string>
#include <type_traits>
#include <utility>

#include <gmock/gmock.h>

#include "base/status.h"

// Matchers for Status and Result<T>. A failed assertion prints the code and the message.
//
//   ASSERT_OK(file.Close());
//   EXPECT_THAT(ParsePort("80"), IsOkAndHolds(80));
//   EXPECT_THAT(ParsePort("x"), StatusIs(Code::kInvalidArgument, HasSubstr("'x'")));
//   ASSERT_OK_AND_ASSIGN(const JobSpec spec, ParseJobSpec(text));
#define ASSERT_OK(expression) ASSERT_THAT(expression, ::edl::IsOk())
#define EXPECT_OK(expression) EXPECT_THAT(expression, ::edl::IsOk())
#define ASSERT_OK_AND_ASSIGN(target, expression) \
  ASSERT_OK_AND_ASSIGN_INNER(EDL_CONCAT(edl_result_, __LINE__), target, expression)
#define ASSERT_OK_AND_ASSIGN_INNER(result, target, expression) \
  auto result = (expression);                                  \
  ASSERT_OK(result);                                           \
  target = std::move(result).value()

namespace edl {

// Found by GoogleTest when it prints values.
template <typename T>
void PrintTo(const Result<T>& result, std::ostream* out) {
  if (result.ok()) {
    *out << "OK: " << ::testing::PrintToString(*result);
  } else {
    *out << result.status();
  }
}

namespace status_matchers_internal {

inline Status StatusOf(const Status& status) { return status; }
template <typename T>
Status StatusOf(const Result<T>& result) {
  return result.status();
}

class IsOkMatcher {
 public:
  template <typename T>
  bool MatchAndExplain(const T& value, ::testing::MatchResultListener* /*listener*/) const {
    return value.ok();
  }
  void DescribeTo(std::ostream* out) const { *out << "is OK"; }
  void DescribeNegationTo(std::ostream* out) const { *out << "is not OK"; }
};

class StatusIsMatcher {
 public:
  StatusIsMatcher(::testing::Matcher<Code> code, ::testing::Matcher<const std::string&> message)
      : code_(std::move(code)), message_(std::move(message)) {}

  template <typename T>
  bool MatchAndExplain(const T& value, ::testing::MatchResultListener* /*listener*/) const {
    const Status status = StatusOf(value);
    return code_.Matches(status.code()) && message_.Matches(status.message());
  }
  void DescribeTo(std::ostream* out) const {
    *out << "has a code that ";
    code_.DescribeTo(out);
    *out << " and a message that ";
    message_.DescribeTo(out);
  }
  void DescribeNegationTo(std::ostream* out) const {
    *out << "has a code that ";
    code_.DescribeNegationTo(out);
    *out << " or a message that ";
    message_.DescribeNegationTo(out);
  }

 private:
  ::testing::Matcher<Code> code_;
  ::testing::Matcher<const std::string&> message_;
};

// R is Result<T>, perhaps const and a reference.
template <typename R>
class IsOkAndHoldsImplementation : public ::testing::MatcherInterface<R> {
 public:
  using Value = std::decay_t<decltype(*std::declval<R>())>;

  template <typename Inner>
  explicit IsOkAndHoldsImplementation(const Inner& inner)
      : inner_(::testing::SafeMatcherCast<const Value&>(inner)) {}

  bool MatchAndExplain(R result, ::testing::MatchResultListener* listener) const override {
    return result.ok() && inner_.MatchAndExplain(*result, listener);
  }
  void DescribeTo(std::ostream* out) const override {
    *out << "is OK and holds a value that ";
    inner_.DescribeTo(out);
  }
  void DescribeNegationTo(std::ostream* out) const override {
    *out << "is not OK or holds a value that ";
    inner_.DescribeNegationTo(out);
  }

 private:
  const ::testing::Matcher<const Value&> inner_;
};

template <typename Inner>
class IsOkAndHoldsMatcher {
 public:
  explicit IsOkAndHoldsMatcher(Inner inner) : inner_(std::move(inner)) {}

  template <typename R>
  operator ::testing::Matcher<R>() const {  // NOLINT: matchers convert implicitly
    return ::testing::Matcher<R>(new IsOkAndHoldsImplementation<R>(inner_));
  }

 private:
  const Inner inner_;
};

}  // namespace status_matchers_internal

// Matches a Status or a Result that is OK.
inline auto IsOk() {
  return ::testing::MakePolymorphicMatcher(status_matchers_internal::IsOkMatcher());
}

// Matches a Status or a Result whose code and message match.
inline auto StatusIs(::testing::Matcher<Code> code,
                     ::testing::Matcher<const std::string&> message = ::testing::_) {
  return ::testing::MakePolymorphicMatcher(
      status_matchers_internal::StatusIsMatcher(std::move(code), std::move(message)));
}

// Matches a Result that is OK and whose value matches `inner`, a matcher or a value.
template <typename Inner>
auto IsOkAndHolds(Inner inner) {
  return status_matchers_internal::IsOkAndHoldsMatcher<Inner>(std::move(inner));
}

}  // namespace edl
