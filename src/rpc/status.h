#pragma once

#include <grpcpp/support/status.h>

#include "base/status.h"

namespace edl::rpc {

// Convert between gRPC's status and ours. Codes have the same numbers; FromGrpc returns kUnknown
// for a number that is not a canonical code.
Status FromGrpc(const grpc::Status& status);
grpc::Status ToGrpc(const Status& status);

}  // namespace edl::rpc
