#pragma once

#include <filesystem>
#include <optional>

#include "metrics/exposition.h"

#include "base/status.h"

namespace edl::metrics {

// What the kernel knows about a process besides ProcessUse.
struct ProcessFigures {
  double started_at = 0;  // seconds since 1970
  uint64_t virtual_bytes = 0;
  uint64_t open_fds = 0;
  uint64_t most_fds = 0;
  std::optional<uint64_t> memory_limit_bytes;  // of its control group; nullopt: none is set
};

// Where the kernel shows them. Tests give other folders.
struct ProcessFiles {
  std::filesystem::path proc = "/proc";
  std::filesystem::path cgroups = "/sys/fs/cgroup";
};

// The figures of this process. Unavailable: a file of `proc` cannot be read.
Result<ProcessFigures> ReadProcess(const ProcessFiles& files = {});

// Adds the metrics of every process. Adds none if the kernel does not show them.
void AddProcess(Exposition& out, const ProcessFiles& files = {});

}  // namespace edl::metrics
