#include "job/replica.h"

namespace edl::job {

std::string_view NameOf(ExitCause::Kind kind) {
  switch (kind) {
    case ExitCause::Kind::kSucceeded:
      return "succeeded";
    case ExitCause::Kind::kFailed:
      return "failed";
    case ExitCause::Kind::kKilled:
      return "killed";
    case ExitCause::Kind::kOutOfMemory:
      return "out_of_memory";
    case ExitCause::Kind::kNotLaunched:
      return "not_launched";
  }
  return "?";
}

}  // namespace edl::job
