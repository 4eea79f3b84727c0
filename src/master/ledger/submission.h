#pragma once

#include <filesystem>

#include "base/status.h"
#include "job/job_spec.h"
#include "master/ledger/ledger.h"

namespace edl::master {

// Opens the ledger of `spec`'s submission in a job's folder, or begins one. A ledger of another
// submission is moved to `old-ID` in that folder, with its checkpoints: it is neither used nor
// deleted.
//
// FailedPrecondition: the job is resumed, and the ledger is another submission's, or knows fewer
// completed batches than the job's status did.
Result<Ledger> OpenLedger(const std::filesystem::path& folder, const job::JobSpec& spec);

}  // namespace edl::master
