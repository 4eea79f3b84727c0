#pragma once

#include <string>
#include <vector>

#include "backend/cluster_jobs.h"
#include "base/status.h"
#include "cli/format.h"

namespace edl::cli {

// One line for each finding, its fix below it, and a last line with the totals.
std::string FindingsText(const std::vector<backend::Finding>& findings, UseColor use_color);
std::string FindingsJson(const std::vector<backend::Finding>& findings, const std::string& where);

bool IsAnyMissing(const std::vector<backend::Finding>& findings);

// FailedPrecondition if any finding blocks the job. The message lists all of these with their
// fixes.
Status CheckNothingBlocks(const std::vector<backend::Finding>& findings);

}  // namespace edl::cli
