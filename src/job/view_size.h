#pragma once

#include <cstddef>
#include <string>

#include "job/job_view.h"

namespace edl::job {

// The view as compact JSON of at most `most_bytes`, for places that hold no more. What does not fit
// is left out in this order: ended replicas, running workers, replicas that wait, then all of them;
// `replicas_left_out` counts them. State, reason, datasets and figures stay, long texts cut short.
std::string FitJson(JobView view, size_t most_bytes);

}  // namespace edl::job
