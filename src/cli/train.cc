#include "cli/train.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/secret.h"
#include "cli/attach.h"
#include "cli/collect_flags.h"
#include "cli/dry_run.h"
#include "cli/findings.h"
#include "cli/format.h"
#include "cli/identity.h"
#include "cli/job_snapshot.h"
#include "cli/job_store.h"
#include "cli/machine_capacity.h"
#include "cli/model_check.h"
#include "cli/no_effect.h"
#include "cli/submission.h"
#include "cli/train_on_cluster.h"
#include "cli/verbs.h"
#include "job/job_file.h"
#include "job/job_spec.h"
#include "job/train_flags.h"

namespace edl::cli {
namespace {

// Checks the flags that a job on this machine cannot have.
Status CheckLocal(const FlagValues& flags, const job::JobSpec& spec) {
  if (!flags.String("yaml").empty()) {
    return InvalidArgument(
        "--yaml={} writes a Kubernetes pod, but this job runs on this machine; --dry_run prints "
        "the job instead",
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

// The error for a new job whose name is taken, with what to do.
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
          "job {0} was interrupted; resume it by adding --resume, or delete "
          "it with `elasticdl delete {0}`",
          name);
    case Liveness::kEnded:
      break;
  }
  const bool again = snapshot.view.state != job::JobState::kSucceeded;
  return AlreadyExists(
      "job {0} already exists: it {1}; delete it with `elasticdl delete {0}`{2}", name,
      snapshot.view.state == job::JobState::kStopped ? "was stopped" : NameOf(snapshot.view.state),
      again ? ", or resume it by adding --resume" : "");
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
    return PermissionDenied("{}; set ELASTICDL_HOME to a writable folder", status.message());
  }
  return status;
}

// FailedPrecondition if the ledger has fewer completed batches than the status: the ledger was
// damaged or lost, and the job would repeat completed batches.
Status CheckLedger(Platform& platform, const JobFolder& folder, const FlagValues& flags) {
  const int64_t known = flags.Int("resume_version");
  if (known == 0) return Ok();
  const Result<job::JobView> ledger = platform.local.read_ledger_view(folder.ledger());
  const int64_t has = ledger.ok() ? ledger->version : 0;
  if (has >= known) return Ok();
  return FailedPrecondition(
      "job {0} cannot be resumed: its status has {1} completed batches, its ledger {2} ({3}). "
      "Restore {2} and the files beside it with the same prefix; or add "
      "--resume_with_lost_progress=true to repeat the lost batches; or start again after "
      "`elasticdl delete {0}`",
      folder.name(), known, folder.ledger().string(),
      ledger.ok() ? fmt::format("has {}", has) : ledger.status().message());
}

// Prepares the folder of a job that is resumed: checks that it may be, and updates its spec and
// view.
Result<JobFolder> ReopenFolder(Platform& platform, const FlagValues& flags,
                               const job::JobSpec& spec) {
  EDL_ASSIGN_OR_RETURN(JobFolder folder, JobStore(platform.home).Find(spec.job_name));
  EDL_ASSIGN_OR_RETURN(JobSnapshot snapshot, TakeSnapshot(platform, folder));
  if (snapshot.liveness == Liveness::kRunning) return Taken(platform, folder);
  if (snapshot.liveness == Liveness::kEnded && snapshot.view.state == job::JobState::kSucceeded) {
    return FailedPrecondition(
        "job {0} succeeded, so there is nothing to resume; delete it with "
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

// The content of --token_file. Empty: the flag is not given.
Result<std::string> ReadTokenFile(const Platform& platform, const job::JobSpec& spec) {
  if (spec.token_file.empty()) return std::string();
  Result<std::string> token = ReadSecretFile(platform.folder / spec.token_file);
  if (!token.ok()) return token.status().Within("--token_file");
  // It becomes a value of gRPC metadata.
  const auto is_printable = [](char c) { return c > ' ' && c <= '~'; };
  if (std::ranges::all_of(*token, is_printable)) return token;
  return InvalidArgument(
      "--token_file={}: a token has only printable ASCII characters and no spaces; make one with "
      "`openssl rand -hex 32`",
      spec.token_file);
}

int Start(Platform& platform, const FlagValues& flags, const job::JobSpec& spec,
          const std::string& why) {
  const Result<std::string> token = ReadTokenFile(platform, spec);
  if (!token.ok()) return Fail(platform, token.status());
  const FolderOrigin origin = spec.resume ? FolderOrigin::kExisted : FolderOrigin::kCreated;
  const Result<JobFolder> folder =
      spec.resume ? ReopenFolder(platform, flags, spec) : MakeFolder(platform, flags, spec);
  if (!folder.ok()) return Fail(platform, folder.status());
  if (!token->empty()) {
    if (const Status written = folder->WriteToken(*token); !written.ok()) {
      return Fail(platform, written);
    }
  }
  const JobStore store(platform.home);
  Result<std::unique_ptr<RunningJob>> running =
      platform.local.start({.job_dir = folder->path(),
                            .volumes = spec.volumes,
                            .detach = spec.detach,
                            .master_port = spec.master_port});
  if (!running.ok()) {
    if (origin == FolderOrigin::kCreated) {
      // A failure is ignored: the user needs the reason why the job did not start.
      (void)store.Remove(*folder);
    }
    return Fail(platform,
                running.status().Within(fmt::format("job {} was not started", spec.job_name)));
  }
  platform.out << fmt::format("job {} runs on this machine{}; its folder is {}\n", spec.job_name,
                              spec.backend == job::BackendKind::kAuto ? why : "",
                              folder->path().string());
  platform.out.flush();
  return spec.detach ? DetachFromJob(platform, **running, *folder, origin)
                     : AttachToJob(platform, **running, *folder, origin);
}

}  // namespace

int Train(Platform& platform, const FlagValues& flags) {
  return RunJob(platform, flags, job::ModelJobType::kTraining);
}

int RunJob(Platform& platform, const FlagValues& given, job::ModelJobType type) {
  // `train ... | head` must not end the job when head exits.
  platform.ignore_broken_pipes();
  Result<FlagValues> flags = CollectFlags(platform, given);
  if (!flags.ok()) return Fail(platform, flags.status());
  // `train --resume` continues a job of any type.
  if (type != job::ModelJobType::kTraining) {
    const Status set = flags->Set("job_type", std::string(NameOf(type)), FlagSource::kCommandLine);
    if (!set.ok()) return Fail(platform, set);
  }
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
  if (status.ok()) status = CheckNothingBlocks(CheckCapacity(platform.machine, *flags, *spec));
  if (status.ok() && spec->model) status = CheckNothingBlocks(CheckModelFiles(platform, *spec));
  if (!status.ok()) return Fail(platform, status);
  if (flags->Bool("dry_run")) {
    platform.out << DryRun(*flags, *spec);
    platform.out.flush();
    return kExitOk;
  }
  PrintFlagsWithoutEffect(platform, *flags, Where::kThisMachine);
  WarnAboutDoubtfulFlags(platform, *flags, *spec);
  return Start(platform, *flags, *spec, why);
}

}  // namespace edl::cli
