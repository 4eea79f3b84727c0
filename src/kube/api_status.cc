#include "kube/api_status.h"

#include <charconv>

#include <nlohmann/json.hpp>

namespace edl::kube {
namespace {

using nlohmann::json;

// What a Status object says, or nothing: a proxy in between answers as it likes.
struct Said {
  int code = 0;
  std::string reason;
  std::string message;
  int retry_after = 0;
};

std::string TextIn(const json& in, const char* name) {
  const auto found = in.find(name);
  return found != in.end() && found->is_string() ? found->get<std::string>() : "";
}

int NumberIn(const json& in, const char* name) {
  const auto found = in.find(name);
  return found != in.end() && found->is_number_integer() ? found->get<int>() : 0;
}

Said Read(const std::string& text) {
  const json in = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!in.is_object()) return {};
  Said said{.code = NumberIn(in, "code"),
            .reason = TextIn(in, "reason"),
            .message = TextIn(in, "message")};
  if (const auto details = in.find("details"); details != in.end() && details->is_object()) {
    said.retry_after = NumberIn(*details, "retryAfterSeconds");
  }
  return said;
}

Code CodeOf(int http, const std::string& reason) {
  switch (http) {
    case 400:
    case 422:
      return Code::kInvalidArgument;
    case 401:
      return Code::kUnauthenticated;
    case 403:
      return Code::kPermissionDenied;
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

Status Make(int http, const Said& said) {
  std::string message = said.message;
  if (message.empty()) message = fmt::format("the API server answered {}", http);
  return Status(CodeOf(http, said.reason), std::move(message));
}

}  // namespace

Status StatusOf(const Response& response) {
  if (response.status >= 200 && response.status < 300) return Ok();
  return Make(response.status, Read(response.body));
}

Status StatusOfObject(const std::string& text) {
  const Said said = Read(text);
  // Of a watch, reason Expired or Gone is what tells that its version is too old.
  const bool expired = said.reason == "Expired" || said.reason == "Gone";
  return Make(expired ? 410 : said.code, said);
}

std::optional<std::chrono::seconds> RetryAfter(const Response& response) {
  int seconds = 0;
  const std::string& text = response.retry_after;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool read = error == std::errc() && end == text.data() + text.size();
  if (!read) seconds = Read(response.body).retry_after;
  if (seconds <= 0) return std::nullopt;
  return std::chrono::seconds(seconds);
}

}  // namespace edl::kube
