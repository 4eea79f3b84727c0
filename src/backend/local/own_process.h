#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/status.h"

namespace edl::backend::local {

// What the agent and the shims do to their own process.

// Gives every signal its default action.
void ResetSignals();

// The id of this process as `proc` has it, a descriptor of a /proc; its own view where `proc` does
// not say.
int64_t ProcessIdIn(int proc);

// Writes `value` to a file of the kernel, which takes it in one write and may not be created.
Status WriteValue(const std::filesystem::path& path, std::string_view value);

}  // namespace edl::backend::local
