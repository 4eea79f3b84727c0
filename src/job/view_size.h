#pragma once

#include <cstddef>
#include <string>

#include "job/job_view.h"

namespace edl::job {

// The view as compact JSON of at most `most_bytes`, for places with a size limit. Replicas are left
// out until it fits, in this order: ended ones, running workers, pending ones, all others;
// `replicas_left_out` counts them. State, reason, datasets and numbers stay; long texts are
// truncated.
std::string FitJson(JobView view, size_t most_bytes);

}  // namespace edl::job
