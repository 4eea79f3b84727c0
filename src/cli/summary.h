#pragma once

#include <string>

#include "cli/job_snapshot.h"

namespace edl::cli {

enum class UseColor { kNo, kYes };

// What a job came to, at its end: records trained, wall time, relaunches, shards repeated or set
// aside, last evaluation, remarks; of a failed one which replica failed, why, and its last lines.
std::string Summary(const JobSnapshot& snapshot, UseColor use_color);

// What `elasticdl status JOB` shows.
std::string StatusText(const JobSnapshot& snapshot, double now, UseColor use_color);

}  // namespace edl::cli
