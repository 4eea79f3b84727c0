#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "backend/cluster_options.h"
#include "base/status.h"
#include "job/job_spec.h"

namespace edl::master {

// The configuration of a master process.
struct MasterConfig {
  job::JobSpec job;
  std::optional<backend::ClusterOptions> cluster;  // nullopt: this machine
  std::filesystem::path folder;
  std::filesystem::path token_file;
  std::string token;
  std::string port;
};

// Reads the flags and the files that they name. The error says which flag or file is wrong.
Result<MasterConfig> ReadMasterConfig(const std::vector<std::string>& arguments);

}  // namespace edl::master
