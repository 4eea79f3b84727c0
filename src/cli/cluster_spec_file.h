#pragma once

#include <string>
#include <string_view>

#include "backend/cluster_jobs.h"
#include "base/status.h"
#include "cli/platform.h"

namespace edl::cli {

// adapt_pods.py.
extern const std::string_view kAdaptPods;

// Lets --cluster_spec=`file` adapt one pod of each role and a service, and returns
// --cluster_spec_json
// (`spec_json` before) with what it changed, as patches. InvalidArgument: what is wrong with the
// file, by its line where it has one; FailedPrecondition: Python, or its package, is missing.
Result<std::string> RunClusterSpec(const Platform& platform, const std::string& file,
                                   const backend::Templates& templates, std::string_view spec_json);

}  // namespace edl::cli
