#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace edl::backend::kubernetes {

// The verb `supervise`, the first process of a master's container: runs `program` with `arguments`
// and starts it again within milliseconds when a signal ended it, or when it asks for that; the
// kubelet would take up to minutes. Passes SIGTERM and SIGINT on. Returns the exit code.
int Supervise(const std::filesystem::path& program, const std::vector<std::string>& arguments);

}  // namespace edl::backend::kubernetes
