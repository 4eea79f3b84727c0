#pragma once

#include <string>

#include "cli/job_store.h"
#include "cli/platform.h"

namespace edl::cli {

// The message of the last line in the master's log, without its time, level and source. Empty: the
// log is empty.
std::string LastLogMessage(Platform& platform, const JobFolder& folder);

}  // namespace edl::cli
