#pragma once

#include <string>

#include "job/replica.h"

namespace edl::backend {

// What a normal exit with `code` means: 0 succeeded, anything else failed.
job::ExitCause CauseOfExit(int code);

// What an end by `signal` means: SIGKILL and SIGTERM come from outside (killed), all others are of
// the program's own making (failed).
job::ExitCause CauseOfSignal(int signal);

// "SIGKILL"; "signal 40" for one without a name.
std::string NameOfSignal(int signal);

}  // namespace edl::backend
