#pragma once

#include <string>
#include <string_view>

#include <grpcpp/grpcpp.h>

#include "base/status.h"

namespace edl::master {

// Unauthenticated: the call does not have the job's token in its metadata. `fix` ends the message.
Status CheckToken(const grpc::ServerContext& context, const std::string& token,
                  std::string_view fix);

}  // namespace edl::master
