#include "cli/collect_flags.h"

#include <string>
#include <string_view>

#include "base/file.h"
#include "cli/job_store.h"
#include "job/job_file.h"
#include "job/model_spec.h"
#include "job/train_flags.h"

namespace edl::cli {
namespace {

// Flags of one call of `train`, which are not kept for a resumed job.
constexpr std::string_view kFlagsOfThisCall[] = {"detach", "resume", "resume_with_lost_progress",
                                                 "dry_run", "wait"};

// Adds the flags with which a job of this machine was started. Ok if the job is not on this
// machine.
Status SetAsBefore(Platform& platform, const std::string& job, FlagValues& flags) {
  const Result<JobFolder> folder = JobStore(platform.home).Find(job);
  if (folder.status().code() == Code::kNotFound) return Ok();
  if (!folder.ok()) return folder.status();
  EDL_ASSIGN_OR_RETURN(const std::string spec, folder->ReadSpec());
  EDL_RETURN_IF_ERROR(job::SetFromJobFile(flags, spec).Within(folder->spec().string()));
  for (const std::string_view flag : kFlagsOfThisCall) {
    EDL_RETURN_IF_ERROR(flags.Set(flag, "false", FlagSource::kFile));
  }
  return flags.Set("resume_workers", "0", FlagSource::kFile);
}

}  // namespace

Result<FlagValues> CollectFlags(Platform& platform, const FlagValues& given) {
  FlagValues flags(job::TrainFlags());
  EDL_RETURN_IF_ERROR(SetFromEnvironment(flags, platform.variable));
  const std::string& path = given.String("file");
  std::string file;
  if (!path.empty()) {
    EDL_ASSIGN_OR_RETURN(file, ReadFile(path));
  }
  FlagValues named(job::TrainFlags());
  EDL_RETURN_IF_ERROR(job::SetFromJobFile(named, file).Within(path));
  const std::string job =
      given.given("job_name") ? given.String("job_name") : named.String("job_name");
  if (given.Bool("resume") && !job.empty()) {
    EDL_RETURN_IF_ERROR(SetAsBefore(platform, job, flags));
  }
  EDL_RETURN_IF_ERROR(job::SetFromJobFile(flags, file).Within(path));
  for (const FlagSpec& spec : given.table().specs()) {
    if (!given.given(spec.name)) continue;
    EDL_RETURN_IF_ERROR(flags.Set(spec.name, given.Text(spec.name), given.source(spec.name)));
  }
  // The master reads all values from a file, where it cannot tell a default from a given value.
  if (job::IsModelJob(flags) && !flags.given("num_ps_pods")) {
    EDL_RETURN_IF_ERROR(flags.Set("num_ps_pods", "1", FlagSource::kDefault));
  }
  // Only a --num_workers that is given now replaces the number that `elasticdl scale` set.
  if (given.Bool("resume") && (given.given("num_workers") || named.given("num_workers"))) {
    EDL_RETURN_IF_ERROR(
        flags.Set("resume_workers", flags.Text("num_workers"), FlagSource::kCommandLine));
  }
  return flags;
}

}  // namespace edl::cli
