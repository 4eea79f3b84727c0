#include "base/status.h"

#include <gtest/gtest.h>

namespace edl {
namespace {

TEST(Status, WithinAddsContextInFrontOfTheMessage) {
  const Status status = NotFound("part {} is missing", 3).Within("restoring checkpoint 40");

  EXPECT_EQ(status.ToString(), "NOT_FOUND: restoring checkpoint 40: part 3 is missing");
}

TEST(Status, StaysOkWithinAnything) { EXPECT_EQ(Ok().Within("anywhere"), Ok()); }

TEST(Status, MapsAFullDiskToResourceExhausted) {
  EXPECT_EQ(StatusFromErrno(ENOSPC, "writing the ledger").code(), Code::kResourceExhausted);
}

TEST(Status, ContainsTheTextOfErrno) {
  EXPECT_EQ(StatusFromErrno(EIO, "opening status.json").message(),
            "opening status.json: Input/output error");
}

TEST(Status, MapsATakenPortAndAnUnreachableHost) {
  EXPECT_EQ(StatusFromErrno(EADDRINUSE, "listening").code(), Code::kAlreadyExists);
  EXPECT_EQ(StatusFromErrno(EHOSTUNREACH, "connecting").code(), Code::kUnavailable);
}

Result<int> Half(int number) {
  if (number % 2 != 0) return InvalidArgument("{} is odd", number);
  return number / 2;
}

Result<int> Quarter(int number) {
  EDL_ASSIGN_OR_RETURN(const int half, Half(number));
  return Half(half);
}

TEST(Result, HoldsTheValueOrTheFirstFailure) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Quarter(6).status().message(), "3 is odd");
}

}  // namespace
}  // namespace edl
