#include "backend/cluster_jobs.h"

namespace edl::backend {

std::string_view NameOf(Finding::Verdict verdict) {
  switch (verdict) {
    case Finding::Verdict::kOk:
      return "ok";
    case Finding::Verdict::kMissing:
      return "missing";
    case Finding::Verdict::kCannotTell:
      return "cannot tell";
  }
  return "?";
}

}  // namespace edl::backend
