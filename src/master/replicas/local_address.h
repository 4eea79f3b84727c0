#pragma once

#include <string>

#include "master/types.h"

namespace edl::master {

// Returns MY_POD_IP of a replica on this machine: a loopback address of its own, so that each
// replica has another host, as on a cluster.
std::string LocalAddress(ReplicaRef replica);

}  // namespace edl::master
