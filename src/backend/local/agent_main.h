#pragma once

#include "backend/local/agent.h"
#include "backend/local/sandbox.h"
#include "base/file.h"

namespace edl::backend::local {

// The main function of the agent, in the process that was cloned for it with `namespaces`. Its
// first message on the lifeline reports whether the job was started. Before its last message it has
// ended every process of the job. Exits with the code of the master.
//
// REQUIRES: all signals are blocked, and the process has one thread.
[[noreturn]] void RunAgent(const AgentOptions& options, const Namespaces& namespaces,
                           Identity identity, FileDescriptor lifeline);

}  // namespace edl::backend::local
