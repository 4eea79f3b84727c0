#include "rpc/status.h"

namespace edl::rpc {

static_assert(static_cast<int>(Code::kUnauthenticated) == grpc::StatusCode::UNAUTHENTICATED);
static_assert(static_cast<int>(Code::kUnavailable) == grpc::StatusCode::UNAVAILABLE);
static_assert(static_cast<int>(Code::kNotFound) == grpc::StatusCode::NOT_FOUND);

Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return Ok();
  const int code = status.error_code();
  const bool known = code > 0 && code <= static_cast<int>(Code::kUnauthenticated);
  return Status(known ? static_cast<Code>(code) : Code::kUnknown, status.error_message());
}

grpc::Status ToGrpc(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), status.message());
}

}  // namespace edl::rpc
