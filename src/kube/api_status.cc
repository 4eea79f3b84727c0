#include "kube/api_status.h"

#include <algorithm>
#include <charconv>

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace edl::kube {
namespace {

using nlohmann::json;

// The content of a Status object. Empty if the answer is not one, because a proxy may answer
// anything.
struct StatusBody {
  int code = 0;
  std::string reason;
  std::string message;
  int64_t retry_after = 0;
};

StatusBody Read(const std::string& text) {
  const json in = ReadJson(text);
  if (!in.is_object()) return {};
  StatusBody body{.code = static_cast<int>(NumberIn(in, "code")),
                  .reason = TextIn(in, "reason"),
                  .message = TextIn(in, "message")};
  body.retry_after = NumberIn(FieldAt(in, {"details"}), "retryAfterSeconds");
  return body;
}

Code CodeOf(int http, const std::string& reason, const std::string& message) {
  switch (http) {
    case 400:
    case 422:
      return Code::kInvalidArgument;
    case 401:
      return Code::kUnauthenticated;
    case 403: {
      // Only the text distinguishes an exceeded quota from a missing permission.
      const bool quota = message.find("exceeded quota") != std::string::npos;
      return quota ? Code::kResourceExhausted : Code::kPermissionDenied;
    }
    case 404:
      return Code::kNotFound;
    case 409:
      return reason == "AlreadyExists" ? Code::kAlreadyExists : Code::kAborted;
    case 410:
      return Code::kOutOfRange;
    case 429:
      return Code::kResourceExhausted;
    case 504:
      return Code::kDeadlineExceeded;
    default:
      return http >= 500 ? Code::kUnavailable : Code::kUnknown;
  }
}

Status Make(int http, const StatusBody& body) {
  std::string message = body.message;
  if (message.empty()) message = fmt::format("the API server returned HTTP status {}", http);
  const Code code = CodeOf(http, body.reason, message);
  return Status(code, std::move(message));
}

}  // namespace

Status StatusOf(const Response& response) {
  if (response.status >= 200 && response.status < 300) return Ok();
  return Make(response.status, Read(response.body));
}

Status StatusOfObject(const std::string& text) {
  const StatusBody body = Read(text);
  // A watch whose version is too old fails with the reason Expired or Gone.
  const bool expired = body.reason == "Expired" || body.reason == "Gone";
  return Make(expired ? 410 : body.code, body);
}

bool IsMissingRole(const Status& status) {
  return status.code() == Code::kPermissionDenied &&
         status.message().find(" cannot ") != std::string::npos;
}

std::optional<std::chrono::seconds> RetryAfter(const Response& response) {
  int64_t seconds = 0;
  const std::string& text = response.retry_after;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool read = error == std::errc() && end == text.data() + text.size();
  if (!read) seconds = Read(response.body).retry_after;
  if (seconds <= 0) return std::nullopt;
  constexpr int64_t kDay = 86'400;  // also keeps the number within the range of the clock
  return std::chrono::seconds(std::min(seconds, kDay));
}

}  // namespace edl::kube
