#pragma once

#include <filesystem>
#include <string_view>

namespace edl {

// The number of processors that this process may use: its CPU affinity, limited by the quotas of
// its control groups (rounded up). At least 1.
unsigned UsableCpus();

// The same for `online` processors and the cgroup v2 with path `group`, in the hierarchy mounted at
// `mounted`. The quotas of its parent groups apply too.
unsigned CpusWithin(unsigned online, const std::filesystem::path& mounted, std::string_view group);

}  // namespace edl
