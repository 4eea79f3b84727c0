#pragma once

#include <string>
#include <vector>

#include "ps/server.h"

namespace edl::ps {

// What the lanes of a server have and did, in the text form that Prometheus reads.
std::string MetricsText(const std::vector<LaneStats>& lanes);

}  // namespace edl::ps
