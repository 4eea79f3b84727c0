#include "metrics/process_metrics.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "metrics/catalog.h"
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process_use.h"
#include "base/text.h"

namespace edl::metrics {
namespace {

namespace fs = std::filesystem;

uint64_t Number(std::string_view text) {
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// The limit of the control group, and of the groups above it that the process sees.
std::optional<uint64_t> MemoryLimit(const ProcessFiles& files) {
  const Result<std::string> groups = ReadFile(files.proc / "self/cgroup");
  if (!groups.ok()) return std::nullopt;
  std::optional<uint64_t> lowest;
  for (const std::string_view line : Split(*groups, '\n')) {
    if (!line.starts_with("0::/")) continue;
    fs::path folder = files.cgroups / std::string(line.substr(4));
    while (true) {
      // "max", or no such file at the root: no limit.
      const Result<std::string> limit = ReadFile(folder / "memory.max");
      const uint64_t bytes = limit.ok() ? Number(*limit) : 0;
      if (bytes > 0) lowest = std::min(lowest.value_or(bytes), bytes);
      if (folder == files.cgroups || !folder.has_parent_path()) break;
      folder = folder.parent_path();
    }
  }
  return lowest;
}

// When the machine was started, in seconds since 1970; 0: not known.
double BootTime(const ProcessFiles& files) {
  const Result<std::string> stat = ReadFile(files.proc / "stat");
  if (!stat.ok()) return 0;
  for (const std::string_view line : Split(*stat, '\n')) {
    if (line.starts_with("btime ")) return static_cast<double>(Number(line.substr(6)));
  }
  return 0;
}

}  // namespace

Result<ProcessFigures> ReadProcess(const ProcessFiles& files) {
  EDL_ASSIGN_OR_RETURN(const std::string stat, ReadFile(files.proc / "self/stat"));
  // The name of the program, in parentheses, may contain anything.
  const size_t name_end = stat.rfind(')');
  const std::vector<std::string_view> fields =
      Split(std::string_view(stat).substr(name_end == std::string::npos ? 0 : name_end + 1), ' ');
  // proc(5) counts the process id as field 1 and the name as field 2; fields[0] is empty.
  const auto field = [&](size_t number) { return Number(fields[number - 2]); };
  if (name_end == std::string::npos || fields.size() < 23) {
    return Unavailable("{} has an unknown format", (files.proc / "self/stat").string());
  }
  const double ticks = static_cast<double>(std::max(1L, sysconf(_SC_CLK_TCK)));
  ProcessFigures figures;
  figures.started_at = BootTime(files) + static_cast<double>(field(22)) / ticks;
  figures.virtual_bytes = field(23);
  std::error_code ignored;
  const fs::directory_iterator end;
  for (fs::directory_iterator at(files.proc / "self/fd", ignored); !ignored && at != end;
       at.increment(ignored)) {
    ++figures.open_fds;
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) figures.most_fds = limit.rlim_cur;
  figures.memory_limit_bytes = MemoryLimit(files);
  return figures;
}

void AddProcess(Exposition& out, const ProcessFiles& files) {
  const std::optional<ProcessUse> use = ReadProcessUse();
  const Result<ProcessFigures> figures = ReadProcess(files);
  if (!figures.ok() || !use.has_value()) return;
  out.AddOnly(kProcessCpu, use->cpu_seconds);
  out.AddOnly(kProcessResident, use->memory_bytes);
  out.AddOnly(kProcessVirtual, figures->virtual_bytes);
  out.AddOnly(kProcessStart, figures->started_at);
  out.AddOnly(kProcessFds, figures->open_fds);
  out.AddOnly(kProcessMostFds, figures->most_fds);
  if (figures->memory_limit_bytes.has_value()) {
    out.AddOnly(kProcessMemoryLimit, *figures->memory_limit_bytes);
  }
}

}  // namespace edl::metrics
