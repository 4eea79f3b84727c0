#include "base/process_use.h"

#include <charconv>
#include <string>

#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

namespace edl {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

std::optional<ProcessUse> ReadProcessUse() {
  rusage used{};
  if (getrusage(RUSAGE_SELF, &used) != 0) return std::nullopt;
  // The second number is the count of resident pages.
  const Result<std::string> pages = ReadFile("/proc/self/statm");
  if (!pages.ok()) return std::nullopt;
  const auto numbers = Split(*pages, ' ');
  int64_t resident = 0;
  if (numbers.size() < 2) return std::nullopt;
  std::from_chars(numbers[1].data(), numbers[1].data() + numbers[1].size(), resident);
  return ProcessUse{.cpu_seconds = Seconds(used.ru_utime) + Seconds(used.ru_stime),
                    .memory_bytes = resident * sysconf(_SC_PAGESIZE)};
}

}  // namespace edl
