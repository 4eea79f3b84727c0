#include "backend/local/own_process.h"

#include <array>
#include <csignal>
#include <cstdlib>

#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"

namespace edl::backend::local {

void ResetSignals() {
  for (int signal = 1; signal < NSIG; ++signal) {
    if (signal != SIGKILL && signal != SIGSTOP) std::signal(signal, SIG_DFL);
  }
}

int64_t ProcessIdIn(int proc) {
  std::array<char, 32> text{};
  const ssize_t length = readlinkat(proc, "self", text.data(), text.size() - 1);
  return length > 0 ? std::atoll(text.data()) : getpid();
}

Status WriteValue(const std::filesystem::path& path, std::string_view value) {
  const FileDescriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid()) return Errno("opening {}", path.string());
  if (write(file.get(), value.data(), value.size()) < 0) {
    return Errno("writing '{}' to {}", value, path.string());
  }
  return Ok();
}

}  // namespace edl::backend::local
