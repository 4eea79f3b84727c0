#pragma once

#include <memory>

#include "base/status.h"
#include "cli/job_store.h"
#include "client/master_client.h"

namespace edl::cli {

// A client for the master of a job on this machine, with the address and the token in the job's
// folder. NotFound: the job has no master yet. Makes no call, so the master need not be reachable.
Result<std::unique_ptr<client::MasterClient>> ClientOfMaster(const JobFolder& folder);

}  // namespace edl::cli
