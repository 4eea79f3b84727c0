#include "base/version.h"

#include <fmt/format.h>

#include "cli/verbs.h"

namespace edl::cli {

int ShowVersion(Platform& platform, const FlagValues& flags) {
  platform.out << (flags.String("output") == "json"
                       ? fmt::format("{{\"version\": \"{}\"}}\n", kVersion)
                       : fmt::format("elasticdl {}\n", kVersion));
  platform.out.flush();
  return kExitOk;
}

}  // namespace edl::cli
