#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "base/status.h"
#include "cli/job_store.h"
#include "cli/platform.h"
#include "client/master_client.h"

namespace edl::cli {

// A client for the master of a job on this machine, with the address and the token in the job's
// folder. NotFound: the job has no master yet. Makes no call, so the master need not be reachable.
Result<std::unique_ptr<client::MasterClient>> ClientOfMaster(const JobFolder& folder);

// Asks the master of a job that runs, and reads the ledger of one that does not.
template <typename T>
Result<T> AskMasterOrReadLedger(
    Platform& platform, const JobFolder& folder,
    const std::function<Result<T>(client::MasterClient&)>& ask,
    const std::function<Result<T>(const std::filesystem::path&)>& read) {
  EDL_ASSIGN_OR_RETURN(const bool running, platform.local.is_running(folder.path()));
  if (!running) return read(folder.ledger());
  EDL_ASSIGN_OR_RETURN(const auto master, ClientOfMaster(folder));
  Result<T> answer = ask(*master);
  if (answer.ok()) return answer;
  // The job may have ended after is_running.
  EDL_ASSIGN_OR_RETURN(const bool still, platform.local.is_running(folder.path()));
  return still ? answer : read(folder.ledger());
}

}  // namespace edl::cli
