#include "master/process/master_config.h"

#include <algorithm>
#include <cmath>

#include "base/cpus.h"
#include "base/secret.h"
#include "job/job_file.h"
#include "job/train_flags.h"
#include "master/model/checkpoint_version.h"

namespace edl::master {
namespace {

// The lanes of a parameter server if --ps_lanes is not given: the CPUs of this machine. On a
// cluster the node is not known yet, so the requested CPUs count.
int64_t DefaultPsLanes(const job::JobSpec& job) {
  constexpr int64_t kMost = 16;
  if (job.backend != job::BackendKind::kKubernetes) {
    return std::clamp<int64_t>(UsableCpus(), 1, kMost);
  }
  const auto found = job.resources.find(job::Role::kPs);
  if (found == job.resources.end()) return 1;
  const double cpu = std::max(found->second.request.cpu, found->second.limit.cpu);
  return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(cpu)), 1, kMost);
}

}  // namespace

Result<MasterConfig> ReadMasterConfig(const std::vector<std::string>& arguments) {
  EDL_ASSIGN_OR_RETURN(const FlagValues flags,
                       job::ParseWithJobFile(job::MasterFlags(), arguments));
  MasterConfig config;
  EDL_ASSIGN_OR_RETURN(config.job, job::MakeJobSpec(flags));
  config.job.external_replicas = flags.Bool("external_replicas");
  if (config.job.backend == job::BackendKind::kKubernetes) {
    EDL_ASSIGN_OR_RETURN(config.cluster, backend::MakeClusterOptions(flags));
    config.job.checkpoint_dir = config.job.ClusterCheckpointDir();
    // Without a folder for checkpoints none are taken. `elasticdl train` has printed a warning.
    if (config.job.checkpoint_dir.empty()) config.job.recovery_checkpoint_secs = 0;
  }
  config.job.default_ps_lanes = DefaultPsLanes(config.job);
  if (config.job.model && !config.job.model->trains()) {
    config.job.model->init_version = CheckpointVersion(config.job.checkpoint_dir_for_init);
  }
  config.folder = flags.Text("job_dir");
  if (config.folder.empty()) {
    return InvalidArgument(
        "--job_dir is missing; do not run this verb yourself: `elasticdl train` starts the master");
  }
  const std::filesystem::path secrets = flags.Text("secret_dir");
  config.token_file = (secrets.empty() ? config.folder : secrets) / "token";
  EDL_ASSIGN_OR_RETURN(config.token, ReadSecretFile(config.token_file));
  config.port = flags.Text("port");
  return config;
}

}  // namespace edl::master
