#include "backend/cluster_jobs.h"

namespace edl::backend {

std::string_view NameOf(Finding::CheckResult result) {
  switch (result) {
    case Finding::CheckResult::kOk:
      return "ok";
    case Finding::CheckResult::kMissing:
      return "missing";
    case Finding::CheckResult::kCannotTell:
      return "cannot tell";
  }
  return "?";
}

}  // namespace edl::backend
