#include "job/submission_id.h"

#include <array>

#include <fmt/ranges.h>
#include <sys/random.h>

namespace edl::job {

Result<std::string> NewSubmissionId() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return Errno("generating a submission id");
  }
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

}  // namespace edl::job
