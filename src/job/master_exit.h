#pragma once

namespace edl::job {

// The exit codes of a master process. Its agent, its supervisor and the client read them.
inline constexpr int kMasterSucceeded = 0;         // the job succeeded
inline constexpr int kMasterFailed = 1;            // the job failed
inline constexpr int kMasterBadConfiguration = 2;  // the master could not start, or not go on
inline constexpr int kMasterStopped = 3;           // a user stopped the job
inline constexpr int kMasterLostLedger = 4;        // another master may have the ledger: restart

// Whether a master that exited with `code` had ended its job, with all replicas.
constexpr bool HasEndedItsJob(int code) {
  return code == kMasterSucceeded || code == kMasterFailed || code == kMasterStopped;
}

}  // namespace edl::job
