#pragma once

#include <array>
#include <string>
#include <vector>

#include <sys/syscall.h>
#include <unistd.h>

namespace edl {

// The files for which fsync was called in this test program, in order.
inline std::vector<std::string>& Synced() {
  static std::vector<std::string> names;
  return names;
}

}  // namespace edl

// Replaces fsync of the C library: records the name of the file, and syncs it. Not inline, so only
// one source of a test program may include this header.
extern "C" int fsync(int fd) {
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  std::array<char, 4096> name{};
  if (readlink(link.c_str(), name.data(), name.size() - 1) > 0) {
    edl::Synced().emplace_back(name.data());
  }
  return static_cast<int>(syscall(SYS_fsync, fd));
}
