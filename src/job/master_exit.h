#pragma once

namespace edl::job {

// The exit codes of a master process. Its agent, its supervisor and the client read them.
inline constexpr int kMasterSucceeded = 0;  // the job succeeded
inline constexpr int kMasterFailed = 1;     // the job failed
// The master could not start, or could not write its ledger. It is not started again.
inline constexpr int kMasterBadConfiguration = 2;
inline constexpr int kMasterStopped = 3;  // a user stopped the job
// Only on Kubernetes: the master lost the lease of its ledger to another one. The supervisor starts
// it again. (On this machine, 4 is backend::local::kPortTakenCode.)
inline constexpr int kMasterLostLedger = 4;

// Whether a master that exited with `code` has ended its job and all replicas. Otherwise replicas
// may still run.
constexpr bool HasEndedItsJob(int code) {
  return code == kMasterSucceeded || code == kMasterFailed || code == kMasterStopped;
}

}  // namespace edl::job
