#pragma once

namespace edl::master {

// The verb `master`: runs the master of the job whose folder --job_dir names, until the job has
// ended. `argv` begins after the verb. Returns the exit code, which is one of job/master_exit.h.
int RunMaster(int argc, char** argv);

}  // namespace edl::master
