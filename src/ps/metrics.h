#pragma once

#include <string>
#include <vector>

#include "metrics/exposition.h"

#include "ps/parameter_server.h"

namespace edl::ps {

// The statistics of the lanes, and those of the process.
std::string MetricsText(const std::vector<LaneStats>& lanes, metrics::Format format,
                        metrics::Labels process_labels);

}  // namespace edl::ps
