#include "backend/local/memory_cgroup.h"

#include <sstream>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/local/own_process.h"
#include "base/file.h"

namespace edl::backend::local {
namespace {

namespace fs = std::filesystem;
using Version = CgroupLocation::Version;

bool HasWord(std::string_view text, std::string_view wanted, char separator) {
  std::istringstream words{std::string(text)};
  for (std::string word; std::getline(words, word, separator);) {
    while (!word.empty() && word.back() == '\n') word.pop_back();
    if (word == wanted) return true;
  }
  return false;
}

bool DelegatesMemory(const fs::path& group) {
  const Result<std::string> given = ReadFile(group / "cgroup.subtree_control");
  if (given.ok() && HasWord(*given, "memory", ' ')) return true;
  return WriteValue(group / "cgroup.subtree_control", "+memory").ok();
}

// The path of this process in the hierarchy that has the memory controller.
std::optional<fs::path> PathIn(std::string_view cgroup, Version version) {
  std::istringstream lines{std::string(cgroup)};
  for (std::string line; std::getline(lines, line);) {  // "4:memory:/a/b", "0::/a/b"
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool wanted =
        version == Version::kV2 ? controllers.empty() : HasWord(controllers, "memory", ',');
    if (wanted) return fs::path(line.substr(second + 1));
  }
  return std::nullopt;
}

// The location of `path` in the file system, for a mount with the root `mount_root`.
fs::path Under(const fs::path& mount_point, const std::string& mount_root, const fs::path& path) {
  const fs::path relative = path.lexically_relative(mount_root);
  const bool outside = relative.empty() || *relative.begin() == "..";
  return outside || relative == "." ? mount_point : mount_point / relative;
}

}  // namespace

std::optional<CgroupLocation> FindMemoryCgroup(std::string_view cgroup,
                                               std::string_view mountinfo) {
  std::optional<CgroupLocation> unified;
  std::istringstream lines{std::string(mountinfo)};
  for (std::string line; std::getline(lines, line);) {
    // "36 35 98:0 /root /point options tags - type source super_options"
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream before(line.substr(0, dash));
    std::istringstream after(line.substr(dash + 3));
    std::string skipped, mount_root, mount_point, type, source, super_options;
    before >> skipped >> skipped >> skipped >> mount_root >> mount_point;
    after >> type >> source >> super_options;
    if (type == "cgroup" && HasWord(super_options, "memory", ',')) {
      const auto path = PathIn(cgroup, Version::kV1);
      if (!path.has_value()) continue;
      return CgroupLocation{Version::kV1, mount_point, Under(mount_point, mount_root, *path)};
    }
    if (type == "cgroup2" && !unified.has_value()) {
      const auto path = PathIn(cgroup, Version::kV2);
      if (!path.has_value()) continue;
      unified = CgroupLocation{Version::kV2, mount_point, Under(mount_point, mount_root, *path)};
    }
  }
  return unified;
}

Result<fs::path> MemoryCgroups::JobGroup() {
  if (!job_group_.empty()) return job_group_;
  if (!location_.has_value()) return Unimplemented("this machine has no memory cgroups");
  Status first_failure;
  for (fs::path parent = location_->own;; parent = parent.parent_path()) {
    const fs::path group = parent / name_;
    const bool delegates = location_->version == Version::kV1 || DelegatesMemory(parent);
    if (delegates && (mkdir(group.c_str(), 0755) == 0 || errno == EEXIST)) {
      job_group_ = group;
      return job_group_;
    }
    if (first_failure.ok()) first_failure = Errno("making the cgroup {}", group.string());
    // With version 1 a group with processes may have children, so an error at one level also occurs
    // at the level above.
    if (parent == location_->root || location_->version == Version::kV1 ||
        !parent.has_relative_path()) {
      return first_failure;
    }
  }
}

Result<fs::path> MemoryCgroups::Make(const std::string& replica, int64_t limit_bytes) {
  EDL_ASSIGN_OR_RETURN(const fs::path parent, JobGroup());
  const bool v2 = location_->version == Version::kV2;
  if (v2 && !DelegatesMemory(parent)) {
    return PermissionDenied("{} does not delegate the memory controller to its children",
                            parent.string());
  }
  const fs::path group = parent / replica;
  if (mkdir(group.c_str(), 0755) != 0 && errno != EEXIST) {
    return Errno("making the cgroup {}", group.string());
  }
  const std::string limit = std::to_string(limit_bytes);
  Status limited = WriteValue(group / (v2 ? "memory.max" : "memory.limit_in_bytes"), limit);
  if (!limited.ok()) {
    rmdir(group.c_str());
    return limited;
  }
  // Like a container: no additional swap, and the kernel kills the whole group. Not every kernel
  // supports this.
  if (v2) {
    (void)WriteValue(group / "memory.swap.max", "0");
    (void)WriteValue(group / "memory.oom.group", "1");
  } else {
    (void)WriteValue(group / "memory.memsw.limit_in_bytes", limit);
  }
  return group;
}

int64_t MemoryCgroups::OutOfMemoryKills(const fs::path& group) const {
  const bool v2 = location_.has_value() && location_->version == Version::kV2;
  const Result<std::string> text = ReadFile(group / (v2 ? "memory.events" : "memory.oom_control"));
  if (!text.ok()) return 0;
  std::istringstream words(*text);
  std::string name;
  int64_t value = 0;
  while (words >> name >> value) {
    if (name == "oom_kill") return value;
  }
  return 0;
}

void MemoryCgroups::Remove(const fs::path& group) const { rmdir(group.c_str()); }

MemoryCgroups::~MemoryCgroups() {
  if (job_group_.empty()) return;
  std::error_code error;
  std::vector<fs::path> groups;
  for (fs::directory_iterator entry(job_group_, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (entry->is_directory(error)) groups.push_back(entry->path());
  }
  for (const fs::path& group : groups) rmdir(group.c_str());
  rmdir(job_group_.c_str());
}

}  // namespace edl::backend::local
