#pragma once

#include <string>

#include "cli/format.h"
#include "cli/job_snapshot.h"

namespace edl::cli {

// The summary of a job that has ended: records trained, wall time, relaunches, shards repeated or
// quarantined, last evaluation, remarks. For a failed job also the replica that failed it, the
// reason and the last lines of the replica's log.
std::string Summary(const JobSnapshot& snapshot, UseColor use_color);

// The first lines of `status` and `report`: name, state and run time of the job, what is wrong with
// it, and how many records are done.
std::string HeaderText(const JobSnapshot& snapshot, double now, UseColor use_color);

// What `elasticdl status JOB` shows.
std::string StatusText(const JobSnapshot& snapshot, double now, UseColor use_color);

}  // namespace edl::cli
