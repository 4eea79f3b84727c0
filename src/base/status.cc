#include "base/status.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace edl {

std::string_view NameOf(Code code) {
  static constexpr std::array<std::string_view, 17> kNames = {
      "OK",
      "CANCELLED",
      "UNKNOWN",
      "INVALID_ARGUMENT",
      "DEADLINE_EXCEEDED",
      "NOT_FOUND",
      "ALREADY_EXISTS",
      "PERMISSION_DENIED",
      "RESOURCE_EXHAUSTED",
      "FAILED_PRECONDITION",
      "ABORTED",
      "OUT_OF_RANGE",
      "UNIMPLEMENTED",
      "INTERNAL",
      "UNAVAILABLE",
      "DATA_LOSS",
      "UNAUTHENTICATED",
  };
  return kNames.at(static_cast<size_t>(code));
}

std::ostream& operator<<(std::ostream& out, Code code) { return out << NameOf(code); }

Status Status::Within(std::string_view where) && {
  if (ok()) return Ok();
  return Status(code_, fmt::format("{}: {}", where, message_));
}

std::string Status::ToString() const {
  return ok() ? "OK" : fmt::format("{}: {}", NameOf(code_), message_);
}

std::ostream& operator<<(std::ostream& out, const Status& status) {
  return out << status.ToString();
}

Status StatusFromErrno(int error, std::string what) {
  Code code = Code::kUnknown;
  switch (error) {
    case ENOENT:
    case ESRCH:
      code = Code::kNotFound;
      break;
    case EEXIST:
    case EADDRINUSE:
      code = Code::kAlreadyExists;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      code = Code::kPermissionDenied;
      break;
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      code = Code::kResourceExhausted;
      break;
    case EINVAL:
    case ENAMETOOLONG:
    case ENOTDIR:
      code = Code::kInvalidArgument;
      break;
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EAGAIN:
      code = Code::kUnavailable;
      break;
    case ETIMEDOUT:
      code = Code::kDeadlineExceeded;
      break;
    default:
      break;
  }
  std::array<char, 128> buffer{};
  return Status(code, fmt::format("{}: {}", what, strerror_r(error, buffer.data(), buffer.size())));
}

void CheckFailed(const char* file, int line, const char* condition, std::string_view message) {
  fmt::print(stderr, "{}:{}: CHECK({}) failed{}{}\n", file, line, condition,
             message.empty() ? "" : ": ", message);
  std::fflush(stderr);
  std::abort();
}

}  // namespace edl
