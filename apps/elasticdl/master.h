#pragma once

namespace edl::apps {

// What a master in a pod exits with when another one may have its ledger: to be started again, and
// to wait for it.
inline constexpr int kLedgerLost = 4;

// The verb `master`: runs the master of the job whose folder --job_dir names, until the job has
// ended. `argv` begins behind the verb. Returns the exit code.
int RunMaster(int argc, char** argv);

}  // namespace edl::apps
