#pragma once

#include <memory>
#include <string>

#include "master/loop.h"

namespace grpc {
class Service;
}

namespace edl::master {

// Our own service, elasticdl.v1.Master, over a loop that outlives it. Every call needs the token.
std::unique_ptr<grpc::Service> NewMasterService(Loop& loop, std::string token);

}  // namespace edl::master
