#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/status.h"
#include "kube/transport.h"

namespace edl::kube {

// What a refusal means, in our codes:
//   NotFound            404
//   AlreadyExists       409, of a create
//   Aborted             409, somebody changed the object meanwhile: read it again
//   OutOfRange          410, that version of the list is no longer kept: list again
//   InvalidArgument     400, 422; the message has the fields
//   Unauthenticated     401        PermissionDenied    403
//   ResourceExhausted   429, and 403 for a quota that is full
//   DeadlineExceeded    504
//   Unavailable         any other 5xx
// Ok for 2xx. The message is the server's own, which names the object.
Status StatusOf(const Response& response);

// The same for a Status object, as a watch has it in an ERROR event.
Status StatusOfObject(const std::string& json);

// Whether the account lacks a role for the call. The server answers 403 for that and for what its
// admission controllers reject, which is about the object and does not change; only the words
// ("User x cannot create resource ...") tell them apart.
bool IsMissingRole(const Status& status);

// How long the server asks to wait, by its Retry-After or its Status; nullopt: it does not say.
std::optional<std::chrono::seconds> RetryAfter(const Response& response);

}  // namespace edl::kube
