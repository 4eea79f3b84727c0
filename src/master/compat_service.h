#pragma once

#include <memory>
#include <vector>

#include "job/job_spec.h"
#include "master/loop.h"

namespace grpc {
class Service;
}

namespace edl::master {

// The published wire: proto.Master with the calls of all lines, and proto.TrainLoopMaster. Its
// clients cannot send a token, so only loopback addresses are served. All outlive the services.
std::vector<std::unique_ptr<grpc::Service>> NewCompatServices(Loop& loop, const job::JobSpec& job);

}  // namespace edl::master
