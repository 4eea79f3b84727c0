#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace edl::backend::kubernetes {

// The verb `supervise`, the first process in the container of a master. Runs `program` with
// `arguments`, and restarts it within milliseconds when a signal killed it or when it requests
// that; the kubelet would take up to minutes. Forwards SIGTERM and SIGINT. Returns the exit code.
int Supervise(const std::filesystem::path& program, const std::vector<std::string>& arguments);

}  // namespace edl::backend::kubernetes
