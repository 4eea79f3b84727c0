#include <string>
#include <vector>

#include "base/file.h"
#include "cli/dry_run.h"
#include "cli/findings.h"
#include "cli/follow.h"
#include "cli/format.h"
#include "cli/gather_flags.h"
#include "cli/identity.h"
#include "cli/job_snapshot.h"
#include "cli/job_store.h"
#include "cli/machine_capacity.h"
#include "cli/no_effect.h"
#include "cli/train_on_cluster.h"
#include "cli/verbs.h"
#include "job/job_file.h"
#include "job/job_spec.h"
#include "job/train_flags.h"

namespace edl::cli {
namespace {

// Whether this machine can run it.
Status CheckLocal(const FlagValues& flags, const job::JobSpec& spec) {
  if (!flags.String("yaml").empty()) {
    return InvalidArgument(
        "--yaml={} asks for a Kubernetes pod, and this job is for this machine; --dry_run prints "
        "the job as it was understood",
        flags.String("yaml"));
  }
  for (const job::Volume& volume : spec.volumes) {
    if (volume.claim_name.empty()) continue;
    return InvalidArgument(
        "--volume: claim_name={} is a claim in a cluster; on this machine give host_path=FOLDER",
        volume.claim_name);
  }
  return Ok();
}

// Why a folder of that name cannot become this job's, and what to do.
Status Taken(Platform& platform, const JobFolder& folder) {
  EDL_ASSIGN_OR_RETURN(const JobSnapshot snapshot, TakeSnapshot(platform, folder));
  const std::string name = folder.name();
  switch (snapshot.liveness) {
    case Liveness::kRunning:
      return AlreadyExists(
          "job {0} is running; see `elasticdl status {0}`, or stop it with "
          "`elasticdl stop {0}`",
          name);
    case Liveness::kInterrupted:
      return AlreadyExists(
          "job {0} was interrupted; go on with it by adding --resume, or remove "
          "it with `elasticdl delete {0}`",
          name);
    case Liveness::kEnded:
      break;
  }
  const bool again = snapshot.view.state != job::JobState::kSucceeded;
  return AlreadyExists(
      "there was a job {0}, which {1}; remove it with `elasticdl delete {0}`{2}", name,
      snapshot.view.state == job::JobState::kStopped ? "was stopped" : NameOf(snapshot.view.state),
      again ? ", or go on with it by adding --resume" : "");
}

double WallSeconds(const Platform& platform) {
  return std::chrono::duration<double>(platform.clock.WallNow().time_since_epoch()).count();
}

Result<JobFolder> MakeFolder(Platform& platform, const FlagValues& flags,
                             const job::JobSpec& spec) {
  const JobStore store(platform.home);
  if (const Result<JobFolder> folder = store.Find(spec.job_name); folder.ok()) {
    return Taken(platform, *folder);
  }
  FlagValues own = flags;
  EDL_RETURN_IF_ERROR(BeginSubmission(own));
  Result<JobFolder> folder =
      store.Create(spec.job_name, job::ToJobFile(own),
                   {.name = spec.job_name, .started_at = WallSeconds(platform)});
  if (folder.ok()) return folder;
  Status status = folder.status().Within(fmt::format("job {} was not started", spec.job_name));
  if (status.code() == Code::kPermissionDenied) {
    return PermissionDenied("{}; set ELASTICDL_HOME to a folder that you can write",
                            status.message());
  }
  return status;
}

// A ledger that knows fewer completed batches than the status was damaged or lost, and the job
// would train again what is done.
Status CheckLedger(Platform& platform, const JobFolder& folder, const FlagValues& flags) {
  const int64_t known = flags.Int("resume_version");
  if (known == 0) return Ok();
  const Result<job::JobView> ledger = platform.local.read_ledger_view(folder.ledger());
  const int64_t has = ledger.ok() ? ledger->version : 0;
  if (has >= known) return Ok();
  return FailedPrecondition(
      "job {0} cannot be resumed: its status knows {1} completed batches, its ledger {2} ({3}). "
      "Restore {2} and the files beside it whose names begin so; or add "
      "--resume_with_lost_progress=true to train again what is lost; or begin anew with "
      "`elasticdl delete {0}`",
      folder.name(), known, folder.ledger().string(),
      ledger.ok() ? fmt::format("knows {}", has) : ledger.status().message());
}

// A job that may go on, with its view made as good as new.
Result<JobFolder> ReopenFolder(Platform& platform, const FlagValues& flags,
                               const job::JobSpec& spec) {
  EDL_ASSIGN_OR_RETURN(JobFolder folder, JobStore(platform.home).Find(spec.job_name));
  EDL_ASSIGN_OR_RETURN(JobSnapshot snapshot, TakeSnapshot(platform, folder));
  if (snapshot.liveness == Liveness::kRunning) return Taken(platform, folder);
  if (snapshot.liveness == Liveness::kEnded && snapshot.view.state == job::JobState::kSucceeded) {
    return FailedPrecondition(
        "job {0} succeeded, so there is nothing to resume; remove it with "
        "`elasticdl delete {0}`",
        spec.job_name);
  }
  FlagValues own = flags;
  EDL_RETURN_IF_ERROR(ContinueSubmission(own, snapshot.view));
  EDL_RETURN_IF_ERROR(CheckLedger(platform, folder, own));
  platform.out << fmt::format(
      "resuming job {}, which {}\n", spec.job_name,
      snapshot.liveness == Liveness::kInterrupted || snapshot.view.state == job::JobState::kStopped
          ? "was " + snapshot.state()
          : snapshot.state());
  EDL_RETURN_IF_ERROR(folder.WriteSpec(job::ToJobFile(own)));
  EDL_RETURN_IF_ERROR(folder.WriteView(ResumedView(std::move(snapshot.view), own)));
  return folder;
}

int Start(Platform& platform, const FlagValues& flags, const job::JobSpec& spec,
          const std::string& why) {
  const Folder made = spec.resume ? Folder::kExisted : Folder::kMade;
  const Result<JobFolder> folder =
      spec.resume ? ReopenFolder(platform, flags, spec) : MakeFolder(platform, flags, spec);
  if (!folder.ok()) return Fail(platform, folder.status());
  const JobStore store(platform.home);
  Result<std::unique_ptr<RunningJob>> running = platform.local.start(
      {.job_dir = folder->path(), .volumes = spec.volumes, .detach = spec.detach});
  if (!running.ok()) {
    if (made == Folder::kMade) {
      // The failure to start is what the user must know; a leftover folder says so by itself.
      (void)store.Remove(*folder);
    }
    return Fail(platform,
                running.status().Within(fmt::format("job {} was not started", spec.job_name)));
  }
  platform.out << fmt::format("job {} runs on this machine{}; its folder is {}\n", spec.job_name,
                              spec.backend == job::BackendKind::kAuto ? why : "",
                              folder->path().string());
  platform.out.flush();
  return spec.detach ? LeaveRunning(platform, **running, *folder, made)
                     : Follow(platform, **running, *folder, made);
}

}  // namespace

int Train(Platform& platform, const FlagValues& given) {
  // `train ... | head` ends its output, not the job.
  platform.ignore_broken_pipes();
  Result<FlagValues> flags = GatherFlags(platform, given);
  if (!flags.ok()) return Fail(platform, flags.status());
  std::string why;
  const Result<std::unique_ptr<backend::ClusterJobs>> cluster =
      ChooseCluster(platform, *flags, why);
  if (!cluster.ok()) return Fail(platform, cluster.status());
  if (*cluster != nullptr) return TrainOnCluster(platform, **cluster, *std::move(flags));
  if (const std::string& job = flags->String("job_name"); flags->Bool("resume") && !job.empty()) {
    const Result<JobFolder> folder = JobStore(platform.home).Find(job);
    if (!folder.ok()) return Fail(platform, folder.status());
  }
  const Result<job::JobSpec> spec = job::MakeJobSpec(*flags);
  if (!spec.ok()) return Fail(platform, spec.status());
  Status status = CheckLocal(*flags, *spec);
  if (status.ok()) status = RefusalOf(CheckRoom(platform.machine, *flags, *spec));
  if (!status.ok()) return Fail(platform, status);
  if (flags->Bool("dry_run")) {
    platform.out << DryRun(*flags, *spec);
    platform.out.flush();
    return kExitOk;
  }
  SayWhatHasNoEffect(platform, *flags, Where::kThisMachine);
  SayWhatMayBeMissed(platform, *flags, *spec);
  return Start(platform, *flags, *spec, why);
}

}  // namespace edl::cli
