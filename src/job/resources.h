#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/status.h"

namespace edl::job {

// Resources of a replica: --worker_resource_request="cpu=0.3,memory=1024Mi".
struct Resources {
  double cpu = 0;                              // cores; 0: not given
  int64_t memory_bytes = 0;                    // 0: not given
  std::map<std::string, std::string> amounts;  // all keys, with gpu as nvidia.com/gpu
  bool operator==(const Resources&) const = default;
};

// Parses "key=amount,..." or a JSON object. InvalidArgument: the message has the position.
Result<Resources> ParseResources(std::string_view text);

}  // namespace edl::job
