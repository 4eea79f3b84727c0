#pragma once

#include <string>

#include "base/status.h"

namespace edl::job {

// 128 random bits as 32 hexadecimal digits: the name of one submission of a job.
Result<std::string> NewSubmissionId();

}  // namespace edl::job
