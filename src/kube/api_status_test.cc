#include "kube/api_status.h"

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::kube {
namespace {

Response Refusal(int status, const std::string& reason) {
  return {.status = status,
          .body = R"({"kind":"Status","message":"pods \"a\" says no","reason":")" + reason +
                  R"(","code":)" + std::to_string(status) + "}"};
}

TEST(ApiStatus, MapsEachRejectionToACode) {
  const std::tuple<int, const char*, Code> refusals[] = {
      {400, "BadRequest", Code::kInvalidArgument},
      {401, "Unauthorized", Code::kUnauthenticated},
      {403, "Forbidden", Code::kPermissionDenied},
      {404, "NotFound", Code::kNotFound},
      {409, "AlreadyExists", Code::kAlreadyExists},
      {409, "Conflict", Code::kAborted},
      {410, "Expired", Code::kOutOfRange},
      {422, "Invalid", Code::kInvalidArgument},
      {429, "TooManyRequests", Code::kResourceExhausted},
      {500, "InternalError", Code::kUnavailable},
      {503, "ServiceUnavailable", Code::kUnavailable},
      {504, "Timeout", Code::kDeadlineExceeded},
      {418, "", Code::kUnknown},
  };
  for (const auto& [status, reason, code] : refusals) {
    EXPECT_EQ(StatusOf(Refusal(status, reason)), Status(code, "pods \"a\" says no")) << status;
  }
  EXPECT_OK(StatusOf({.status = 202}));
}

TEST(ApiStatus, DistinguishesAMissingRoleFromARejectedObject) {
  EXPECT_TRUE(IsMissingRole(PermissionDenied("User \"u\" cannot get resource \"pods\"")));
  EXPECT_FALSE(IsMissingRole(PermissionDenied("no PriorityClass with name x was found")));
  EXPECT_FALSE(IsMissingRole(NotFound("User \"u\" cannot be found")));
}

TEST(ApiStatus, AcceptsABodyThatIsNotAStatus) {
  EXPECT_EQ(StatusOf({.status = 502, .body = "<html>bad gateway"}),
            Status(Code::kUnavailable, "the API server returned HTTP status 502"));
}

TEST(ApiStatus, RecognisesAnExpiredWatchByEitherReason) {
  for (const char* text : {R"({"reason":"Expired","code":410,"message":"too old"})",
                           R"({"reason":"Gone","message":"too old"})"}) {
    EXPECT_THAT(StatusOfObject(text), StatusIs(Code::kOutOfRange)) << text;
  }
  EXPECT_EQ(StatusOfObject(R"({"reason":"InternalError","code":500})").code(), Code::kUnavailable);
}

TEST(ApiStatus, SaysHowLongToWait) {
  using std::chrono::seconds;
  EXPECT_EQ(RetryAfter({.status = 429, .retry_after = "7"}), seconds(7));
  EXPECT_EQ(RetryAfter({.status = 429, .body = R"({"details":{"retryAfterSeconds":2}})"}),
            seconds(2));
  EXPECT_EQ(RetryAfter({.status = 429, .retry_after = "Wed, 21 Oct 2026 07:28:00 GMT"}),
            std::nullopt);
  EXPECT_EQ(RetryAfter({.status = 429, .body = "busy"}), std::nullopt);
}

}  // namespace
}  // namespace edl::kube
