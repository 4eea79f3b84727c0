#pragma once

#include "base/status.h"

namespace edl {

// Raises this process's limit of open files to the most that it may have, and returns that. What
// keeps a connection for each of many peers calls it at its start: the usual 1,024 are soon gone.
Result<int64_t> RaiseDescriptorLimit();

}  // namespace edl
