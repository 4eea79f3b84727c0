#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace edl::backend::local {

// The memory cgroup hierarchy of this process.
struct CgroupLocation {
  enum class Version { kV1, kV2 };
  Version version = Version::kV1;
  std::filesystem::path root;  // the mount point of the hierarchy
  std::filesystem::path own;   // the group of this process
};

// Parses the content of /proc/self/cgroup and /proc/self/mountinfo. nullopt: there is no memory
// controller.
std::optional<CgroupLocation> FindMemoryCgroup(std::string_view cgroup, std::string_view mountinfo);

// Creates the cgroups that limit the memory of the replicas of one job, one group per replica. They
// are below the group of the agent where possible (version 1, or the root), otherwise below the
// nearest ancestor that this user may change. Created with the first limit. Confined.
class MemoryCgroups {
 public:
  MemoryCgroups(std::optional<CgroupLocation> location, std::string name)
      : location_(std::move(location)), name_(std::move(name)) {}
  ~MemoryCgroups();
  MemoryCgroups(const MemoryCgroups&) = delete;
  MemoryCgroups& operator=(const MemoryCgroups&) = delete;

  // Creates a group. A process that writes 0 into its cgroup.procs is limited, with all its
  // children.
  Result<std::filesystem::path> Make(const std::string& replica, int64_t limit_bytes);
  // How many processes of the group the kernel killed for lack of memory.
  int64_t OutOfMemoryKills(const std::filesystem::path& group) const;
  void Remove(const std::filesystem::path& group) const;

 private:
  Result<std::filesystem::path> JobGroup();

  std::optional<CgroupLocation> location_;
  std::string name_;
  std::filesystem::path job_group_;  // empty: not created yet
};

}  // namespace edl::backend::local
