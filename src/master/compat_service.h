#pragma once

#include <memory>
#include <vector>

#include "job/job_spec.h"
#include "master/call.h"

namespace edl::master {

// The published wire: proto.Master with the calls of all lines, and proto.TrainLoopMaster. Its
// clients cannot send a token, so only loopback addresses are served. `job` outlives the services.
std::vector<std::unique_ptr<Service>> NewCompatServices(const job::JobSpec& job);

}  // namespace edl::master
