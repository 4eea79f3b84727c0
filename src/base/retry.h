#pragma once

#include "base/status.h"

// Which failures are worth a retry. Only the code decides, never the message. There are several
// sets, because it depends on the call and on the peer.

namespace edl {

// The peer did not answer: kUnavailable, kDeadlineExceeded. An immediate retry is likely to fail
// too.
bool IsUnreachable(const Status& status);

// The connection is lost, with all calls in flight: IsUnreachable, and kDataLoss, which means that
// the stream ended in the middle of a message or contained a damaged one.
bool IsConnectionLoss(const Status& status);

// The same call may succeed later: IsUnreachable, kResourceExhausted (a rate limit, a quota) and
// kAborted (a conflict with another client).
bool IsTransient(const Status& status);

// IsTransient, and kUnauthenticated and kPermissionDenied: an administrator may renew a credential
// or add a role while the caller waits.
bool IsTransientOrDenied(const Status& status);

// The peer is unreachable, or was replaced by another process than the call was meant for:
// IsUnreachable, kAborted, kCancelled and kFailedPrecondition. Not kResourceExhausted, because a
// full disk is a failure of the call itself.
bool IsUnreachableOrReplaced(const Status& status);

}  // namespace edl
