#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/collect_flags.h"
#include "cli/findings.h"
#include "cli/job_location.h"
#include "cli/submission.h"
#include "cli/this_machine.h"
#include "cli/train_on_cluster.h"
#include "cli/verbs.h"
#include "job/job_spec.h"
#include "job/train_flags.h"

namespace edl::cli {
namespace {

constexpr std::string_view kOutput = "output";

// The flags of the job, as `train` would collect them.
Result<FlagValues> JobFlags(Platform& platform, const FlagValues& given) {
  FlagValues flags(job::TrainFlags());
  for (const FlagSpec& spec : given.table().specs()) {
    if (!given.given(spec.name) || spec.name == kOutput) continue;
    EDL_RETURN_IF_ERROR(flags.Set(spec.name, given.Text(spec.name), given.source(spec.name)));
  }
  EDL_ASSIGN_OR_RETURN(flags, CollectFlags(platform, flags));
  // Without a job, only what every job needs is checked.
  if (flags.String("job_name").empty()) {
    EDL_RETURN_IF_ERROR(flags.Set("job_name", "check", FlagSource::kDefault));
  }
  if (flags.String("job_command").empty() && flags.String("model_def").empty()) {
    EDL_RETURN_IF_ERROR(flags.Set("job_command", "true", FlagSource::kDefault));
  }
  return flags;
}

// The cluster on which `train` would run the job; without a job, the configured cluster.
Result<std::unique_ptr<backend::ClusterJobs>> ChoosePlace(Platform& platform,
                                                          const FlagValues& given,
                                                          const FlagValues& flags) {
  std::string why;
  const bool any_job = given.given("job_command") || given.given("model_def") ||
                       given.given("file") || flags.String("backend") != "auto" ||
                       !flags.String("image_name").empty();
  if (any_job) return ChooseCluster(platform, flags, why);
  Result<std::unique_ptr<backend::ClusterJobs>> cluster = FindCluster(platform, flags);
  if (cluster.status().code() == Code::kNotFound) return std::unique_ptr<backend::ClusterJobs>();
  return cluster;
}

Result<std::vector<backend::Finding>> CheckCluster(const Platform& platform,
                                                   backend::ClusterJobs& cluster,
                                                   FlagValues flags) {
  const bool has_image = !flags.String("image_name").empty();
  if (!has_image) {
    EDL_RETURN_IF_ERROR(flags.Set("image_name", "none", FlagSource::kCommandLine));
  }
  EDL_ASSIGN_OR_RETURN(backend::Submission submission, MakeSubmission(platform, cluster, flags));
  if (!has_image) {
    for (auto& [role, image] : submission.options.images) image.clear();
  }
  return cluster.Check(submission, backend::Depth::kAll);
}

Result<std::vector<backend::Finding>> CheckHere(Platform& platform, const FlagValues& flags) {
  EDL_ASSIGN_OR_RETURN(const job::JobSpec job, job::MakeJobSpec(flags));
  return CheckThisMachine(platform, flags, job);
}

}  // namespace

const FlagTable& CheckFlags() {
  static const FlagTable table([] {
    std::vector<FlagSpec> specs = job::TrainFlags().specs();
    // Replaces the --output of `train`, the path of a model, which no check needs.
    std::erase_if(specs, [](const FlagSpec& spec) { return spec.name == kOutput; });
    specs.push_back(
        {.name = std::string(kOutput),
         .default_value = "text",
         .group = specs.front().group,
         .help = "The output format: text, or json for scripts. (A path, which train takes, "
                 "has no effect.)",
         .value_name = "text|json",
         .common = true});
    return specs;
  }());
  return table;
}

int Check(Platform& platform, const FlagValues& given) {
  const Result<FlagValues> flags = JobFlags(platform, given);
  if (!flags.ok()) return Fail(platform, flags.status());
  const Result<std::unique_ptr<backend::ClusterJobs>> cluster =
      ChoosePlace(platform, given, *flags);
  if (!cluster.ok()) return Fail(platform, cluster.status());
  const bool here = *cluster == nullptr;
  const std::string where = here ? "this machine" : (*cluster)->Where();
  const Result<std::vector<backend::Finding>> findings =
      here ? CheckHere(platform, *flags) : CheckCluster(platform, **cluster, *flags);
  if (!findings.ok()) return Fail(platform, findings.status());
  if (given.String(kOutput) == "json") {
    platform.out << FindingsJson(*findings, where);
  } else {
    platform.out << "Requirements of a job on " << where << ":\n"
                 << FindingsText(*findings, platform.terminal.color);
  }
  platform.out.flush();
  return IsAnyMissing(*findings) ? kExitFailed : kExitOk;
}

}  // namespace edl::cli
