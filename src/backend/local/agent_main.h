#pragma once

#include "backend/local/agent.h"
#include "backend/local/sandbox.h"
#include "base/file.h"

namespace edl::backend::local {

// The agent's whole life, in the process that was cloned for it with `namespaces`. Its first word
// on the lifeline is a reply that says whether the job was started; before its last it has ended
// every process of the job. Exits with the master's code.
//
// REQUIRES: all signals are blocked, and the process has one thread.
[[noreturn]] void RunAgent(const AgentOptions& options, const Namespaces& namespaces,
                           Identity identity, FileDescriptor lifeline);

}  // namespace edl::backend::local
