#pragma once

#include <memory>

#include "base/status.h"
#include "cli/job_store.h"
#include "client/master_client.h"

namespace edl::cli {

// A client of the master of a job on this machine, with the address and the token of its folder.
// NotFound: the job has no master yet. It makes no call: the first one says whether the master
// answers.
Result<std::unique_ptr<client::MasterClient>> ClientOfMaster(const JobFolder& folder);

}  // namespace edl::cli
