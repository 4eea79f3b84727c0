#include "cli/train_on_cluster.h"

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "cli/dry_run.h"
#include "cli/findings.h"
#include "cli/identity.h"
#include "cli/job_location.h"
#include "cli/no_effect.h"
#include "cli/submission.h"
#include "cli/verbs.h"
#include "cli/watch.h"
#include "job/job_file.h"
#include "job/names.h"
#include "job/train_flags.h"

namespace edl::cli {
namespace {

// The error for a new job whose name is taken, with what to do.
Status Taken(backend::ClusterJobs& cluster, const std::string& name) {
  EDL_ASSIGN_OR_RETURN(const backend::ClusterJob job, cluster.Find(name));
  const JobSnapshot snapshot = SnapshotOf(job);
  if (snapshot.liveness == Liveness::kRunning) {
    return AlreadyExists(
        "job {0} is running in {1}; see `elasticdl status {0}`, or stop it with `elasticdl stop "
        "{0}`",
        name, cluster.Where());
  }
  return AlreadyExists(
      "job {0} already exists in {1}: it {2}; delete it with `elasticdl delete {0}`{3}", name,
      cluster.Where(),
      snapshot.liveness == Liveness::kInterrupted ? "was interrupted" : snapshot.state(),
      snapshot.view.state == job::JobState::kSucceeded ? "" : ", or resume it by adding --resume");
}

enum class Kind { kNew, kResumed };

Status Submit(backend::ClusterJobs& cluster, const backend::Submission& submission, Kind kind) {
  const std::string& name = submission.job.job_name;
  const std::string failure = fmt::format("job {} was not submitted", name);
  EDL_RETURN_IF_ERROR(
      CheckNothingBlocks(cluster.Check(submission, backend::Depth::kBlockers)).Within(failure));
  const bool resume = kind == Kind::kResumed;
  Status done = resume ? cluster.Resume(submission) : cluster.Submit(submission);
  if (done.code() == Code::kAlreadyExists) return Taken(cluster, name);
  if (resume && done.code() == Code::kFailedPrecondition) return Taken(cluster, name);
  return std::move(done).Within(failure);
}

// The flags of the job as it was submitted, with the flags that are given now over them.
Result<FlagValues> AsBefore(backend::ClusterJobs& cluster, const FlagValues& now) {
  EDL_ASSIGN_OR_RETURN(const std::string spec, cluster.SpecOf(now.String("job_name")));
  FlagValues flags(job::TrainFlags());
  EDL_RETURN_IF_ERROR(job::SetFromJobFile(flags, spec));
  for (const FlagSpec& flag : now.table().specs()) {
    if (!now.given(flag.name)) continue;
    EDL_RETURN_IF_ERROR(flags.Set(flag.name, now.Text(flag.name), now.source(flag.name)));
  }
  return flags;
}

Result<backend::Submission> MakeFresh(const Platform& platform, backend::ClusterJobs& cluster,
                                      FlagValues& flags) {
  // $ELASTICDL_PYTHON names an interpreter of this machine. The workers run that of their image.
  if (flags.source("python") == FlagSource::kEnvironment) {
    EDL_RETURN_IF_ERROR(
        flags.Set("python", flags.table().Find("python")->default_value, FlagSource::kCommandLine));
  }
  EDL_RETURN_IF_ERROR(BeginSubmission(flags));
  return MakeSubmission(platform, cluster, flags);
}

// Prepares a job that is resumed: its submitted flags with the submission id and the version of its
// status.
Result<backend::Submission> MakeResume(const Platform& platform, backend::ClusterJobs& cluster,
                                       FlagValues& flags) {
  const std::string resume_workers = flags.Text("resume_workers");
  EDL_ASSIGN_OR_RETURN(flags, AsBefore(cluster, flags));
  EDL_RETURN_IF_ERROR(flags.Set("resume_workers", resume_workers, FlagSource::kCommandLine));
  EDL_ASSIGN_OR_RETURN(const backend::ClusterJob job, cluster.Find(flags.String("job_name")));
  JobSnapshot snapshot = SnapshotOf(job);
  if (snapshot.liveness == Liveness::kEnded && snapshot.view.state == job::JobState::kSucceeded) {
    return FailedPrecondition(
        "job {0} succeeded, so there is nothing to resume; delete it with `elasticdl delete {0}`",
        job.name);
  }
  EDL_RETURN_IF_ERROR(ContinueSubmission(flags, snapshot.view));
  EDL_ASSIGN_OR_RETURN(backend::Submission submission, MakeSubmission(platform, cluster, flags));
  snapshot.view.name = job.name;
  submission.status_json = ResumedView(std::move(snapshot.view), flags).ToJson();
  return submission;
}

}  // namespace

Result<std::unique_ptr<backend::ClusterJobs>> ChooseCluster(Platform& platform,
                                                            const FlagValues& flags,
                                                            std::string& why) {
  const std::string& backend = flags.String("backend");
  if (backend == "local") return std::unique_ptr<backend::ClusterJobs>();
  const bool automatic = backend == "auto";
  const std::string& job = flags.String("job_name");
  const bool elsewhere =  // a job that is not on this machine
      flags.Bool("resume") && JobStore(platform.home).Find(job).status().code() == Code::kNotFound;
  if (automatic && flags.String("image_name").empty() && !elsewhere) {
    why = " (--backend=auto: there is no --image_name, which a cluster needs)";
    return std::unique_ptr<backend::ClusterJobs>();
  }
  Result<std::unique_ptr<backend::ClusterJobs>> cluster = FindCluster(platform, flags);
  if (automatic && cluster.status().code() == Code::kNotFound) {
    why = " (--backend=auto: no cluster is configured)";
    return std::unique_ptr<backend::ClusterJobs>();
  }
  if (automatic && elsewhere && cluster.ok() &&
      (*cluster)->Find(job).status().code() == Code::kNotFound) {
    return std::unique_ptr<backend::ClusterJobs>();
  }
  return cluster;
}

int TrainOnCluster(Platform& platform, backend::ClusterJobs& cluster, FlagValues flags) {
  const bool resume = flags.Bool("resume");
  const bool dry_run = flags.Bool("dry_run");
  Result<backend::Submission> submission =
      resume ? MakeResume(platform, cluster, flags) : MakeFresh(platform, cluster, flags);
  if (!submission.ok()) return Fail(platform, submission.status());
  const std::string name = submission->job.job_name;
  if (dry_run) {
    platform.out << DryRun(flags, submission->job);
    platform.out.flush();
    return kExitOk;
  }
  if (const std::string& file = flags.String("yaml"); !file.empty()) {
    const Status written = WriteFileAtomically(file, cluster.Manifests(*submission));
    if (!written.ok()) return Fail(platform, written);
    platform.out << fmt::format("ElasticDL job {} YAML has been dumped into file {}.\n", name,
                                file);
    platform.out.flush();
    return kExitOk;
  }
  PrintFlagsWithoutEffect(platform, flags, Where::kCluster);
  WarnAboutUnsavedParameters(platform, submission->job);
  WarnAboutDoubtfulFlags(platform, flags, submission->job);
  const std::vector<job::Volume>& volumes = submission->job.volumes;
  const bool has_claim = std::any_of(volumes.begin(), volumes.end(), [](const job::Volume& volume) {
    return !volume.claim_name.empty();
  });
  if (resume && !has_claim) {
    platform.err << fmt::format(
        "warning: job {} has no volume claim, so its ledger was lost with its master's pod: "
        "--resume "
        "starts with the first record again. With --volume=claim_name=...,mount_path=... a job "
        "continues where it was\n",
        name);
  }
  const Status submitted = Submit(cluster, *submission, resume ? Kind::kResumed : Kind::kNew);
  if (!submitted.ok()) return Fail(platform, submitted);
  platform.out << fmt::format(
      "ElasticDL job {0} was successfully submitted. The master pod is: {1}.\n"
      "It runs in {2}; see `elasticdl status -f {0}`\n",
      name, job::MasterName(name), cluster.Where());
  platform.out.flush();
  if (!flags.Bool("wait")) return kExitOk;
  return WatchJob(platform, name, [&]() -> Result<JobSnapshot> {
    EDL_ASSIGN_OR_RETURN(const backend::ClusterJob job, cluster.Find(name));
    return SnapshotOf(job);
  });
}

}  // namespace edl::cli
