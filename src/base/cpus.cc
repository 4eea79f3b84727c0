#include "base/cpus.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>

#include <sched.h>

#include "base/file.h"

namespace edl {
namespace {

constexpr const char* kMounted = "/sys/fs/cgroup";

unsigned OnlineCpus() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0 && CPU_COUNT(&mask) > 0) {
    return static_cast<unsigned>(CPU_COUNT(&mask));
  }
  return std::max(std::thread::hardware_concurrency(), 1U);
}

unsigned AtMost(unsigned cpus, double quota, double period) {
  if (quota <= 0 || period <= 0) return cpus;
  return std::clamp(static_cast<unsigned>(std::ceil(quota / period)), 1U, cpus);
}

// "max 100000" or "150000 100000".
unsigned WithinFile(unsigned cpus, const std::filesystem::path& file) {
  const Result<std::string> text = ReadFile(file);
  if (!text.ok()) return cpus;
  std::istringstream words(*text);
  std::string quota;
  double period = 0;
  words >> quota >> period;
  return quota == "max" ? cpus : AtMost(cpus, std::atof(quota.c_str()), period);
}

// The limit of cgroup version 1, where quota and period are in two files.
unsigned WithinVersion1(unsigned cpus, const std::filesystem::path& folder) {
  const Result<std::string> quota = ReadFile(folder / "cpu.cfs_quota_us");
  const Result<std::string> period = ReadFile(folder / "cpu.cfs_period_us");
  if (!quota.ok() || !period.ok()) return cpus;
  return AtMost(cpus, std::atof(quota->c_str()), std::atof(period->c_str()));
}

}  // namespace

unsigned CpusWithin(unsigned online, const std::filesystem::path& mounted, std::string_view group) {
  unsigned cpus = std::max(online, 1U);
  std::filesystem::path path = std::filesystem::path(group).relative_path();
  while (true) {
    cpus = WithinFile(cpus, mounted / path / "cpu.max");
    if (path.empty()) return cpus;
    path = path.parent_path();
  }
}

unsigned UsableCpus() {
  unsigned cpus = OnlineCpus();
  const Result<std::string> groups = ReadFile("/proc/self/cgroup");
  if (!groups.ok()) return cpus;
  std::istringstream lines(*groups);
  for (std::string line; std::getline(lines, line);) {
    // "0::/path" of version 2; "4:cpu,cpuacct:/path" of version 1.
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") {
      cpus = CpusWithin(cpus, kMounted, group);
    } else if (controllers.find(",cpu,") != std::string::npos) {
      const std::filesystem::path root = std::filesystem::path(kMounted) / "cpu";
      cpus = WithinVersion1(cpus, root / std::filesystem::path(group).relative_path());
      cpus = WithinVersion1(cpus, root);  // in a container the path is that of the host
    }
  }
  return cpus;
}

}  // namespace edl
