#pragma once

#include <string>

#include "base/status.h"

namespace edl::job {

// A new id for a submission of a job: 128 random bits as 32 hexadecimal digits.
Result<std::string> NewSubmissionId();

}  // namespace edl::job
