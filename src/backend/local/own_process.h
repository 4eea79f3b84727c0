#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/status.h"

namespace edl::backend::local {

// Functions of the agent and the shims on their own process.

// Sets every signal to its default action.
void ResetSignals();

// The id of this process in the PID namespace of `proc`, a descriptor of a /proc; its own id if
// `proc` does not contain it.
int64_t ProcessIdIn(int proc);

// Writes `value` with one write to an existing kernel file.
Status WriteValue(const std::filesystem::path& path, std::string_view value);

}  // namespace edl::backend::local
