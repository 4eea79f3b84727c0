#include "base/retry.h"

#include <set>

#include <gtest/gtest.h>

namespace edl {
namespace {

std::set<Code> CodesFor(bool (*is)(const Status&)) {
  std::set<Code> codes;
  for (int code = 0; code <= static_cast<int>(Code::kUnauthenticated); ++code) {
    if (is(Status(static_cast<Code>(code), "why"))) codes.insert(static_cast<Code>(code));
  }
  return codes;
}

TEST(Retry, DecidesByTheCodeAlone) {
  const std::set<Code> away = {Code::kUnavailable, Code::kDeadlineExceeded};
  EXPECT_EQ(CodesFor(IsUnreachable), away);
  const auto with = [&](std::set<Code> more) {
    more.insert(away.begin(), away.end());
    return more;
  };
  EXPECT_EQ(CodesFor(IsConnectionLoss), with({Code::kDataLoss}));
  EXPECT_EQ(CodesFor(IsTransient), with({Code::kResourceExhausted, Code::kAborted}));
  EXPECT_EQ(CodesFor(IsTransientOrDenied), with({Code::kResourceExhausted, Code::kAborted,
                                                 Code::kUnauthenticated, Code::kPermissionDenied}));
  EXPECT_EQ(CodesFor(IsUnreachableOrReplaced),
            with({Code::kAborted, Code::kCancelled, Code::kFailedPrecondition}));
}

}  // namespace
}  // namespace edl
