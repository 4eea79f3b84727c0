#pragma once

#include <string>

#include "job/replica.h"

namespace edl::backend {

// The cause for a normal exit: 0 is success, any other code is a failure.
job::ExitCause CauseOfExit(int code);

// The cause for an end by a signal: SIGKILL and SIGTERM come from outside (killed); the program
// caused all others itself (failed).
job::ExitCause CauseOfSignal(int signal);

// "SIGKILL"; "signal 40" for a signal without a name.
std::string NameOfSignal(int signal);

}  // namespace edl::backend
