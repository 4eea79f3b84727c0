#pragma once

#include <filesystem>

#include "base/status.h"
#include "job/job_spec.h"
#include "master/ledger/ledger.h"

namespace edl::master {

// Opens the ledger of the submission of `spec` in a job's folder, or creates it. A ledger of
// another submission is moved with its checkpoints to `old-ID` in that folder; it is not used.
//
// FailedPrecondition: the job is resumed, and the ledger belongs to another submission or has fewer
// completed batches than the job's status file.
Result<Ledger> OpenLedger(const std::filesystem::path& folder, const job::JobSpec& spec);

}  // namespace edl::master
