#pragma once

#include <string>

#include "cli/job_store.h"
#include "cli/platform.h"

namespace edl::cli {

// The last line of a master's log without what precedes the message; empty: there is none.
std::string LastLogMessage(Platform& platform, const JobFolder& folder);

}  // namespace edl::cli
