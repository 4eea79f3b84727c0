#pragma once

#include "base/status.h"

namespace edl {

// Raises the soft limit of open files to the hard limit, and returns it. Servers with a connection
// for each of many peers call this when they start, because the usual limit of 1,024 is too low.
Result<int64_t> RaiseDescriptorLimit();

}  // namespace edl
