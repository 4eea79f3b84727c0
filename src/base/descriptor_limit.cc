#include "base/descriptor_limit.h"

#include <cerrno>
#include <cstring>

#include <sys/resource.h>

namespace edl {

Result<int64_t> RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return Unavailable("the limit of open files cannot be read: {}", std::strerror(errno));
  }
  if (limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
      return Unavailable("the limit of open files cannot be raised to {}: {}", limit.rlim_max,
                         std::strerror(errno));
    }
  }
  return static_cast<int64_t>(limit.rlim_cur);
}

}  // namespace edl
