#include "backend/local/process_tree.h"

#include <charconv>
#include <csignal>
#include <filesystem>
#include <map>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

namespace edl::backend::local {
namespace {

namespace fs = std::filesystem;

// Living processes by parent.
std::multimap<pid_t, pid_t> Children() {
  std::multimap<pid_t, pid_t> children;
  std::error_code error;
  fs::directory_iterator entry("/proc", error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    pid_t process = 0;
    const char* end = name.data() + name.size();
    if (std::from_chars(name.data(), end, process).ptr != end) continue;
    const Result<std::string> stat = ReadFile(entry->path() / "stat");
    if (!stat.ok()) continue;  // it has exited in the meantime
    // Format: "pid (command) state parent ...". The command may contain any character.
    const size_t bracket = stat->rfind(')');
    if (bracket == std::string::npos || bracket + 4 >= stat->size()) continue;
    const char state = stat->at(bracket + 2);
    if (state == 'Z' || state == 'X') continue;
    pid_t parent = 0;
    std::from_chars(stat->data() + bracket + 4, stat->data() + stat->size(), parent);
    children.emplace(parent, process);
  }
  return children;
}

}  // namespace

std::vector<pid_t> DescendantsOf(pid_t root, const std::set<pid_t>& spared) {
  const std::multimap<pid_t, pid_t> children = Children();
  std::vector<pid_t> found;
  std::vector<pid_t> open = {root};
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    const auto [first, last] = children.equal_range(parent);
    for (auto child = first; child != last; ++child) {
      if (spared.contains(child->second)) continue;
      found.push_back(child->second);
      open.push_back(child->second);
    }
  }
  return found;
}

void EndDescendants(const std::set<pid_t>& spared) {
  while (true) {
    if (spared.empty()) {
      // The common case, without reading /proc: a process without children has no descendants.
      pid_t reaped = 0;
      while ((reaped = waitpid(-1, nullptr, WNOHANG)) > 0) {
      }
      if (reaped < 0 && errno == ECHILD) return;
    }
    const std::vector<pid_t> processes = DescendantsOf(getpid(), spared);
    if (processes.empty() && !spared.empty()) return;
    for (const pid_t process : processes) kill(process, SIGKILL);
    for (const pid_t process : processes) {
      // Children of other processes become children of this one, and are reaped in the next round.
      while (waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
  }
}

}  // namespace edl::backend::local
