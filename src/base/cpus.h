#pragma once

#include <filesystem>
#include <string_view>

namespace edl {

// How many processors this process may use: those it may run on, and no more than the quotas of
// its control groups allow, rounded up. At least 1.
unsigned UsableCpus();

// The same for `online` processors and a control group of version 2, by its path and the folder
// where the hierarchy is mounted. Quotas of all groups above it hold too.
unsigned CpusWithin(unsigned online, const std::filesystem::path& mounted, std::string_view group);

}  // namespace edl
