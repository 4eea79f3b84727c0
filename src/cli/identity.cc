#include "cli/identity.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "job/model_spec.h"
#include "job/submission_id.h"

namespace edl::cli {
namespace {

constexpr uint64_t kInt32Max = std::numeric_limits<int32_t>::max();

Status SetAll(FlagValues& flags, const std::string& id, int64_t number, int64_t version) {
  EDL_RETURN_IF_ERROR(flags.Set("submission_id", id, FlagSource::kCommandLine));
  EDL_RETURN_IF_ERROR(flags.Set("resume_number", std::to_string(number), FlagSource::kCommandLine));
  return flags.Set("resume_version", std::to_string(version), FlagSource::kCommandLine);
}

}  // namespace

Status BeginSubmission(FlagValues& flags) {
  EDL_ASSIGN_OR_RETURN(const std::string id, job::NewSubmissionId());
  if (job::IsModelJob(flags) && flags.Int("seed") == 0) {
    // The same for all workers of the job, also after --resume.
    const uint64_t seed = std::stoull(id.substr(0, 8), nullptr, 16) % kInt32Max + 1;
    EDL_RETURN_IF_ERROR(flags.Set("seed", std::to_string(seed), FlagSource::kCommandLine));
  }
  EDL_RETURN_IF_ERROR(flags.Set("resume_workers", "0", FlagSource::kCommandLine));
  return SetAll(flags, id, 0, 0);
}

Status ContinueSubmission(FlagValues& flags, const job::JobView& before) {
  // A job of an older version has no submission id, neither in its flags nor in its ledger.
  const std::string id = flags.String("submission_id");
  // A resume that was rejected did not change the ledger, so the larger version stays.
  const int64_t known = std::max(before.version, flags.Int("resume_version"));
  return SetAll(flags, id, flags.Int("resume_number") + 1,
                flags.Bool("resume_with_lost_progress") ? 0 : known);
}

job::JobView ResumedView(job::JobView before, const FlagValues& flags) {
  before.state = job::JobState::kStarting;
  before.reason.clear();
  before.success_rule.clear();
  before.paused.clear();
  before.last_lines.clear();
  before.ended_at = 0;
  if (flags.Bool("resume_with_lost_progress")) before.version = 0;
  return before;
}

}  // namespace edl::cli
