#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace edl::backend::local {

// Where this machine lets this process limit memory.
struct CgroupPlace {
  enum class Version { kV1, kV2 };
  Version version = Version::kV1;
  std::filesystem::path root;  // where the hierarchy begins as this process sees it
  std::filesystem::path own;   // the group that this process is in
};

// Reads /proc/self/cgroup and /proc/self/mountinfo, given as text. None: no memory controller.
std::optional<CgroupPlace> FindMemoryCgroup(std::string_view cgroup, std::string_view mountinfo);

// The groups that limit the memory of one job's replicas, one group each, below the agent's own
// group where that may be (version 1, or the root), else below the nearest group above it that this
// user may change. Made with the first limit. Confined.
class MemoryCgroups {
 public:
  MemoryCgroups(std::optional<CgroupPlace> place, std::string name)
      : place_(std::move(place)), name_(std::move(name)) {}
  ~MemoryCgroups();
  MemoryCgroups(const MemoryCgroups&) = delete;
  MemoryCgroups& operator=(const MemoryCgroups&) = delete;

  // A new group; whoever writes 0 into its cgroup.procs has the limit, with all its children.
  Result<std::filesystem::path> Make(const std::string& replica, int64_t limit_bytes);
  // How many of the group's processes the kernel ended for want of memory.
  int64_t OutOfMemoryKills(const std::filesystem::path& group) const;
  void Remove(const std::filesystem::path& group) const;

 private:
  Result<std::filesystem::path> JobGroup();

  std::optional<CgroupPlace> place_;
  std::string name_;
  std::filesystem::path job_group_;  // empty: not made yet
};

}  // namespace edl::backend::local
