#pragma once

#include <grpcpp/support/status.h>

#include "base/status.h"

namespace edl::rpc {

// The same code and message on either side of the wire: the codes are the same numbers.
Status FromGrpc(const grpc::Status& status);
grpc::Status ToGrpc(const Status& status);

}  // namespace edl::rpc
