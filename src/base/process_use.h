#pragma once

#include <cstdint>
#include <optional>

namespace edl {

// What this process has used.
struct ProcessUse {
  double cpu_seconds = 0;    // since its start, of all threads
  int64_t memory_bytes = 0;  // resident now
};

// nullopt: the system does not say.
std::optional<ProcessUse> ReadProcessUse();

}  // namespace edl
