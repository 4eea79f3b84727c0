#pragma once

#include "job/job_spec.h"
#include "master/service/call.h"

namespace edl::master {

// Adds the compatibility services: proto.Master, with the calls of all published versions, and
// proto.TrainLoopMaster. CompatAdmission decides who may call. `job` outlives the methods.
void AddCompatServices(const job::JobSpec& job, bool on_this_machine, Methods& methods);

}  // namespace edl::master
