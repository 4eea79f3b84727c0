#include "base/retry.h"

namespace edl {

bool IsUnreachable(const Status& status) {
  return status.code() == Code::kUnavailable || status.code() == Code::kDeadlineExceeded;
}

bool IsConnectionLoss(const Status& status) {
  return IsUnreachable(status) || status.code() == Code::kDataLoss;
}

bool IsTransient(const Status& status) {
  return IsUnreachable(status) || status.code() == Code::kResourceExhausted ||
         status.code() == Code::kAborted;
}

bool IsTransientOrDenied(const Status& status) {
  return IsTransient(status) || status.code() == Code::kUnauthenticated ||
         status.code() == Code::kPermissionDenied;
}

bool IsUnreachableOrReplaced(const Status& status) {
  return IsUnreachable(status) || status.code() == Code::kAborted ||
         status.code() == Code::kCancelled || status.code() == Code::kFailedPrecondition;
}

}  // namespace edl
