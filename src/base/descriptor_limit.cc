#include "base/descriptor_limit.h"

#include <cerrno>
#include <cstring>

#include <sys/resource.h>

namespace edl {

Result<int64_t> RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return Unavailable("cannot read the limit of open files: {}", std::strerror(errno));
  }
  if (limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
      return Unavailable("cannot raise the limit of open files to {}: {}", limit.rlim_max,
                         std::strerror(errno));
    }
  }
  return static_cast<int64_t>(limit.rlim_cur);
}

}  // namespace edl
