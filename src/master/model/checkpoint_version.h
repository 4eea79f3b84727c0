#pragma once

#include <cstdint>
#include <string>

namespace edl::master {

// The version in the manifest of a checkpoint. 0 if it cannot be read: the restore of the
// parameter servers then reports why.
int64_t CheckpointVersion(const std::string& folder);

}  // namespace edl::master
