#pragma once

#include <string>

#include "master/types.h"

namespace edl::master {

// MY_POD_IP of a replica on this machine: a loopback address of its own, so that hosts tell
// processes apart here as they do on a cluster.
std::string LocalAddress(ReplicaRef replica);

}  // namespace edl::master
