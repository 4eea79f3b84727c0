#pragma once

#include <string>

#include "master/service/call.h"

namespace edl::master {

// Adds our own service, elasticdl.v1.Master. Every call needs the job's token.
void AddMasterService(const std::string& token, Methods& methods);

}  // namespace edl::master
