#pragma once

#include <memory>
#include <string>

#include "master/call.h"

namespace edl::master {

// Our own service, elasticdl.v1.Master. Every call needs the token.
std::unique_ptr<Service> NewMasterService(std::string token);

}  // namespace edl::master
