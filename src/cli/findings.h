#pragma once

#include <string>
#include <vector>

#include "backend/cluster_jobs.h"
#include "base/status.h"

namespace edl::cli {

// A line for each, with what to do below it, and a line that sums up.
std::string FindingsText(const std::vector<backend::Finding>& findings, bool color);
std::string FindingsJson(const std::vector<backend::Finding>& findings, const std::string& where);

bool IsAnyMissing(const std::vector<backend::Finding>& findings);

// FailedPrecondition: all that blocks a job, in one message with the ways out. Ok: nothing does.
Status RefusalOf(const std::vector<backend::Finding>& findings);

}  // namespace edl::cli
