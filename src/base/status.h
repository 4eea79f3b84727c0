#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/check.h"

namespace edl {

// The canonical codes of gRPC, so that a code means the same in C++, on the wire, as an exit code
// and as a Python exception.
enum class Code {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

std::string_view NameOf(Code code);
std::ostream& operator<<(std::ostream& out, Code code);

// Success, or a code that decides what the caller does and a message that says what failed with
// which values.
//
// Immutable.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  // Adds context in front of the message: "restoring checkpoint 40: <message>". Ok stays Ok.
  Status Within(std::string_view where) &&;

  std::string ToString() const;

  bool operator==(const Status&) const = default;

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

std::ostream& operator<<(std::ostream& out, const Status& status);

inline Status Ok() { return {}; }

// One function for each code: FailedPrecondition("worker {} does not hold shard {}", worker,
// shard).
#define EDL_DEFINE_STATUS_MAKER(Name)                                               \
  template <typename... Args>                                                       \
  Status Name(fmt::format_string<Args...> format, Args&&... args) {                 \
    return Status(Code::k##Name, fmt::format(format, std::forward<Args>(args)...)); \
  }
EDL_DEFINE_STATUS_MAKER(Cancelled)
EDL_DEFINE_STATUS_MAKER(Unknown)
EDL_DEFINE_STATUS_MAKER(InvalidArgument)
EDL_DEFINE_STATUS_MAKER(DeadlineExceeded)
EDL_DEFINE_STATUS_MAKER(NotFound)
EDL_DEFINE_STATUS_MAKER(AlreadyExists)
EDL_DEFINE_STATUS_MAKER(PermissionDenied)
EDL_DEFINE_STATUS_MAKER(ResourceExhausted)
EDL_DEFINE_STATUS_MAKER(FailedPrecondition)
EDL_DEFINE_STATUS_MAKER(Aborted)
EDL_DEFINE_STATUS_MAKER(OutOfRange)
EDL_DEFINE_STATUS_MAKER(Unimplemented)
EDL_DEFINE_STATUS_MAKER(Internal)
EDL_DEFINE_STATUS_MAKER(Unavailable)
EDL_DEFINE_STATUS_MAKER(DataLoss)
EDL_DEFINE_STATUS_MAKER(Unauthenticated)
#undef EDL_DEFINE_STATUS_MAKER

// The failure of a system call, with a code and text by errno: Errno("opening {}", path).
Status StatusFromErrno(int error, std::string what);
template <typename... Args>
Status Errno(fmt::format_string<Args...> format, Args&&... args) {
  const int error = errno;
  return StatusFromErrno(error, fmt::format(format, std::forward<Args>(args)...));
}

// A value, or the Status of the failure to make it.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::in_place_index<0>, std::move(value)) {}        // NOLINT
  Result(Status status) : value_(std::in_place_index<1>, std::move(status)) {  // NOLINT
    CHECK(!std::get<1>(value_).ok(), "a Result without a value needs a failure");
  }

  bool ok() const { return value_.index() == 0; }
  Status status() const { return ok() ? Ok() : std::get<1>(value_); }

  // REQUIRES: ok().
  T& value() & {
    CHECK(ok(), "no value: {}", std::get<1>(value_).message());
    return std::get<0>(value_);
  }
  const T& value() const& {
    CHECK(ok(), "no value: {}", std::get<1>(value_).message());
    return std::get<0>(value_);
  }
  T&& value() && {
    CHECK(ok(), "no value: {}", std::get<1>(value_).message());
    return std::get<0>(std::move(value_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Status> value_;
};

}  // namespace edl

#define EDL_CONCAT_INNER(a, b) a##b
#define EDL_CONCAT(a, b) EDL_CONCAT_INNER(a, b)

#define EDL_RETURN_IF_ERROR(expression)                              \
  do {                                                               \
    if (::edl::Status edl_status = (expression); !edl_status.ok()) { \
      return edl_status;                                             \
    }                                                                \
  } while (false)

// EDL_ASSIGN_OR_RETURN(auto spec, ParseSpec(text));
#define EDL_ASSIGN_OR_RETURN(target, expression) \
  EDL_ASSIGN_OR_RETURN_INNER(EDL_CONCAT(edl_result_, __LINE__), target, expression)
#define EDL_ASSIGN_OR_RETURN_INNER(result, target, expression) \
  auto result = (expression);                                  \
  if (!result.ok()) return result.status();                    \
  target = std::move(result).value()
