#pragma once

#include <filesystem>

#include "cli/platform.h"

namespace edl::apps {

// The local backend for the command line. Each job has an agent process, which runs `program
// master`; `program` is this binary.
cli::LocalJobs MakeLocalJobs(std::filesystem::path program);

}  // namespace edl::apps
