#pragma once

namespace edl::apps {

// The verb `master`: runs the master of the job whose folder --job_dir names, until the job has
// ended. `argv` begins behind the verb. Returns the exit code.
int RunMaster(int argc, char** argv);

}  // namespace edl::apps
