#pragma once

#include <string>
#include <string_view>

#include "backend/cluster_jobs.h"
#include "base/status.h"
#include "cli/platform.h"

namespace edl::cli {

// The source of adapt_pods.py.
extern const std::string_view kAdaptPods;

// Runs the Python `file` of --cluster_spec on one pod of each role and a service, and returns
// `spec_json` (the value of --cluster_spec_json) with the changes of the file added as patches.
// InvalidArgument: the file is wrong, with the line if it is known. FailedPrecondition: Python or
// its kubernetes package is missing.
Result<std::string> RunClusterSpec(const Platform& platform, const std::string& file,
                                   const backend::Templates& templates, std::string_view spec_json);

}  // namespace edl::cli
