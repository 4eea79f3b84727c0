#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/status.h"
#include "kube/transport.h"

namespace edl::kube {

// Converts an HTTP error of the API server into a Status:
//   NotFound            404
//   AlreadyExists       409 for a create
//   Aborted             409 otherwise: the object changed in the meantime; read it again
//   OutOfRange          410: the server no longer keeps that resource version; list again
//   InvalidArgument     400, 422; the message names the fields
//   Unauthenticated     401
//   PermissionDenied    403
//   ResourceExhausted   429, and 403 for an exceeded quota
//   DeadlineExceeded    504
//   Unavailable         any other 5xx
// Returns Ok for 2xx. The message is the server's own, which names the object.
Status StatusOf(const Response& response);

// The same for a Status object, which is what an ERROR event of a watch contains.
Status StatusOfObject(const std::string& json);

// Returns whether a call failed because the account lacks a role. The server answers 403 for that,
// and also when an admission controller rejects the object, which a role does not change. Only the
// text ("User x cannot create resource ...") distinguishes the two.
bool IsMissingRole(const Status& status);

// How long the server asks the client to wait, from the Retry-After header or the Status object.
// nullopt when the answer contains neither.
std::optional<std::chrono::seconds> RetryAfter(const Response& response);

}  // namespace edl::kube
