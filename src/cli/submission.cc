#include "cli/submission.h"

#include <chrono>
#include <utility>

#include "backend/cluster_options.h"
#include "cli/cluster_spec_file.h"
#include "job/job_file.h"
#include "job/job_spec.h"
#include "job/job_view.h"

namespace edl::cli {
namespace {

// The flags for the master. Those that only `train` uses are reset: where to run, how to submit,
// and the Python file, which has been evaluated.
Status Settle(FlagValues& flags) {
  for (const auto& [flag, value] :
       {std::pair("backend", "kubernetes"), std::pair("detach", "false"),
        std::pair("resume", "false"), std::pair("resume_with_lost_progress", "false"),
        std::pair("dry_run", "false"), std::pair("wait", "false"), std::pair("cluster_spec", "")}) {
    EDL_RETURN_IF_ERROR(flags.Set(flag, value, FlagSource::kCommandLine));
  }
  return Ok();
}

}  // namespace

double WallSeconds(const Platform& platform) {
  return std::chrono::duration<double>(platform.clock.WallNow().time_since_epoch()).count();
}

Result<backend::Submission> MakeSubmission(const Platform& platform,
                                           const backend::ClusterJobs& cluster,
                                           const FlagValues& given) {
  FlagValues flags = given;
  const std::string file = flags.String("cluster_spec");
  EDL_RETURN_IF_ERROR(Settle(flags));
  backend::Submission submission;
  EDL_ASSIGN_OR_RETURN(submission.job, job::MakeJobSpec(flags));
  EDL_ASSIGN_OR_RETURN(submission.options, backend::MakeClusterOptions(flags));
  if (!file.empty()) {
    EDL_ASSIGN_OR_RETURN(const std::string spec,
                         RunClusterSpec(platform, file, cluster.MakeTemplates(submission),
                                        flags.String("cluster_spec_json")));
    EDL_RETURN_IF_ERROR(flags.Set("cluster_spec_json", spec, FlagSource::kCommandLine));
    EDL_ASSIGN_OR_RETURN(submission.options, backend::MakeClusterOptions(flags));
  }
  submission.spec_json = job::ToJobFile(flags);
  submission.status_json =
      job::JobView{.name = submission.job.job_name, .started_at = WallSeconds(platform)}.ToJson();
  return submission;
}

}  // namespace edl::cli
