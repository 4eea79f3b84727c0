#pragma once

#include <string>
#include <vector>

#include "ps/parameter_server.h"

namespace edl::ps {

// The statistics of the lanes in the text format of Prometheus.
std::string MetricsText(const std::vector<LaneStats>& lanes);

}  // namespace edl::ps
