#pragma once

#include <memory>
#include <vector>

#include "job/job_spec.h"
#include "master/call.h"

namespace edl::master {

// The published wire: proto.Master with the calls of all lines, and proto.TrainLoopMaster. Its
// clients cannot send a token: CompatAdmission says who may call. `job` outlives the services.
std::vector<std::unique_ptr<Service>> NewCompatServices(const job::JobSpec& job,
                                                        bool on_this_machine);

}  // namespace edl::master
