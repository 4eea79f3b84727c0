#include "cli/no_effect.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/ranges.h>

#include "job/envs.h"
#include "job/model_spec.h"
#include "job/train_flags.h"

namespace edl::cli {
namespace {

// Its values differ only in which of them is rejected.
constexpr std::string_view kStrategy = "distribution_strategy";
// Flags of the original for clusters that have no effect here. A job that sets one is told so.
constexpr std::array<std::string_view, 4> kNotYet = {"enable_automate_memory", "need_pod_manager",
                                                     "extra_pypi_index", "aux_params"};

// Flags that only a job that trains uses.
constexpr std::array<std::string_view, 18> kTraining = {
    "num_epochs",       "training_data",
    "max_step",         "loss",
    "optimizer",        "callbacks",
    "grads_to_wait",    "sync_version_tolerance",
    "use_async",        "lr_staleness_modulation",
    "log_loss_steps",   "evaluation_steps",
    "checkpoint_steps", "keep_checkpoint_max",
    "checkpoint_dir",   "recovery_checkpoint_secs",
    "max_staleness",    "seed"};

template <size_t n>
bool Contains(const std::array<std::string_view, n>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool IsChanged(const FlagValues& flags, const FlagSpec& spec) {
  return flags.given(spec.name) && flags.Text(spec.name) != spec.default_value;
}

}  // namespace

void PrintFlagsWithoutEffect(Platform& platform, const FlagValues& flags, Where where) {
  const auto say = [&](std::string_view why, const auto& is_meant) {
    std::vector<std::string> names;
    for (const FlagSpec& spec : flags.table().specs()) {
      if (is_meant(spec) && IsChanged(flags, spec)) names.push_back("--" + spec.name);
    }
    if (names.empty()) return;
    platform.out << fmt::format("no effect {}: {}\n", why, fmt::join(names, ", "));
  };
  const bool here = where == Where::kThisMachine;
  const auto is_not_yet = [&](const FlagSpec& spec) {
    return !here && Contains(kNotYet, spec.name);
  };
  if (here) {
    say("on this machine (they are for Kubernetes)",
        [](const FlagSpec& spec) { return spec.scope == job::kKubernetesScope; });
  }
  if (job::IsModelJob(flags)) {
    const bool trains = flags.String("job_type") == NameOf(job::ModelJobType::kTraining);
    if (!trains) {
      say("without training", [](const FlagSpec& spec) { return Contains(kTraining, spec.name); });
    }
  } else {
    const bool own_ps = flags.String("ps_program") == "elasticdl";
    say("with --job_command (they are for --model_def)", [&](const FlagSpec& spec) {
      return spec.scope == job::kModelScope && !(own_ps && job::IsParameterServerFlag(spec.name));
    });
  }
  say("in this version", [&](const FlagSpec& spec) {
    return spec.scope == job::kObsoleteScope || spec.name == kStrategy || is_not_yet(spec);
  });
}

void WarnAboutDoubtfulFlags(Platform& platform, const FlagValues& flags, const job::JobSpec& job) {
  if (job.num_ps > 0 && !job.own_ps && !job.need_tf_config) {
    platform.err << fmt::format(
        "--num_ps_pods={} without --need_tf_config: each ps runs --job_command as a worker does "
        "and gets no addresses of the others; add --need_tf_config for TensorFlow's ps, or "
        "--ps_program=elasticdl for ours\n",
        job.num_ps);
  }
  for (const std::string& remark : job::EnvsRemarks(flags.String("envs"))) {
    platform.err << "--envs: " << remark << "\n";
  }
}

void WarnAboutUnsavedParameters(Platform& platform, const job::JobSpec& job) {
  if (!job.own_ps || job.recovery_checkpoint_secs == 0 || !job.ClusterCheckpointDir().empty())
    return;
  platform.out
      << "losing a parameter server will fail this job, because it has no place for checkpoints; "
         "add --volume=claim_name=NAME,mount_path=PATH or --checkpoint_dir=PATH\n";
}

}  // namespace edl::cli
