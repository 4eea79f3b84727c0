#pragma once

#include "base/status.h"

// Which failures are worth another attempt. The code alone decides, never the message: whoever
// makes a Status picks the code that says what the caller may do. Each user has the set that fits
// what it asks and whom.

namespace edl {

// Nobody answered: kUnavailable, kDeadlineExceeded. The next call is likely to fail as well.
bool IsUnreachable(const Status& status);

// The connection is gone, with whatever was under way: IsUnreachable, and kDataLoss, which is a
// stream that ended in the middle of a message or carried a damaged one.
bool IsConnectionLoss(const Status& status);

// The same call may succeed later: IsUnreachable, and kResourceExhausted (a rate limit, a quota)
// and kAborted (somebody else was faster).
bool IsTransient(const Status& status);

// IsTransient, and kUnauthenticated and kPermissionDenied: an administrator may renew a credential
// or add a role while the caller waits.
bool IsTransientOrDenied(const Status& status);

// The peer is away, or it is no longer the process that the call was meant for: IsUnreachable, and
// kAborted, kCancelled and kFailedPrecondition. Not kResourceExhausted: a full disk is a failure of
// the work itself.
bool IsUnreachableOrReplaced(const Status& status);

}  // namespace edl
