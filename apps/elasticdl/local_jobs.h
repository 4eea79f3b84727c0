#pragma once

#include <filesystem>

#include "cli/platform.h"

namespace edl::apps {

// The jobs of this machine for the command line, run by `program` (this binary): through an agent,
// under which `program master` is the master.
cli::LocalJobs MakeLocalJobs(std::filesystem::path program);

}  // namespace edl::apps
