#include "job/job_spec.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <regex>

#include "base/text.h"
#include "job/envs.h"
#include "job/names.h"
#include "job/pairs.h"

namespace edl::job {
namespace {

// The index of a value among the choices of its flag.
template <typename Enum, size_t n>
Enum FromChoice(const std::array<std::string_view, n>& names, std::string_view value) {
  const auto found = std::find(names.begin(), names.end(), value);
  CHECK(found != names.end(), "'{}' is not among the choices of its flag", value);
  return static_cast<Enum>(found - names.begin());
}

constexpr std::array<std::string_view, 3> kBackends = {"auto", "local", "kubernetes"};
constexpr std::array<std::string_view, 5> kLevels = {"DEBUG", "INFO", "WARNING", "ERROR",
                                                     "CRITICAL"};

Result<Resources> ResourcesOf(const FlagValues& flags, const std::string& flag) {
  Result<Resources> resources = ParseResources(flags.String(flag));
  if (!resources.ok()) return resources.status().Within("--" + flag);
  return resources;
}

Result<RoleResources> ReadRole(const FlagValues& flags, Role role) {
  const std::string request = std::string(NameOf(role)) + "_resource_request";
  const std::string limit = std::string(NameOf(role)) + "_resource_limit";
  RoleResources out;
  EDL_ASSIGN_OR_RETURN(out.request, ResourcesOf(flags, request));
  EDL_ASSIGN_OR_RETURN(out.limit, ResourcesOf(flags, limit));
  const bool has_limit = !out.limit.amounts.empty();
  if (!has_limit) out.limit = out.request;
  if (has_limit && out.limit.memory_bytes > 0 &&
      out.limit.memory_bytes < out.request.memory_bytes && flags.given(request)) {
    return InvalidArgument("--{}={} is less than --{}={}", limit, flags.String(limit), request,
                           flags.String(request));
  }
  // On Kubernetes also a default request limits the memory.
  const bool in_cluster = flags.String("backend") == kBackends[2];
  if (has_limit || flags.given(request) || in_cluster) {
    out.memory_limit_bytes = out.limit.memory_bytes;
  }
  return out;
}

Status ReadResources(const FlagValues& flags, JobSpec& spec) {
  for (const Role role :
       {Role::kMaster, Role::kWorker, Role::kPs, Role::kChief, Role::kEvaluator}) {
    EDL_ASSIGN_OR_RETURN(spec.resources[role], ReadRole(flags, role));
  }
  return Ok();
}

Status ReadMiniLanguages(const FlagValues& flags, JobSpec& spec) {
  auto envs = ParseEnvs(flags.String("envs"));
  if (!envs.ok()) return envs.status().Within("--envs");
  spec.envs = *std::move(envs);
  auto volumes = ParseVolumes(flags.String("volume"));
  if (!volumes.ok()) return volumes.status().Within("--volume");
  spec.volumes = *std::move(volumes);
  auto critical = ParseCriticalWorkers(flags.String("critical_worker_index"));
  if (!critical.ok()) return critical.status().Within("--critical_worker_index");
  spec.critical_workers = *std::move(critical);
  spec.populate_env_names = flags.String("populate_env_names");
  try {
    const std::regex names(spec.populate_env_names);
  } catch (const std::regex_error& error) {
    return InvalidArgument("--populate_env_names={} is not a regular expression: {}",
                           spec.populate_env_names, error.what());
  }
  return ReadResources(flags, spec);
}

void ReadPlainValues(const FlagValues& flags, JobSpec& spec) {
  spec.job_name = flags.String("job_name");
  spec.backend = FromChoice<BackendKind>(kBackends, flags.String("backend"));
  spec.detach = flags.Bool("detach");
  spec.resume = flags.Bool("resume");
  spec.submission_id = flags.String("submission_id");
  spec.resume_number = flags.Int("resume_number");
  spec.resumed = spec.resume_number > 0;
  spec.resume_version = flags.Int("resume_version");
  spec.resume_workers = static_cast<int>(flags.Int("resume_workers"));
  spec.job_command = flags.String("job_command");
  spec.log_file_path = flags.String("log_file_path");
  spec.num_workers = static_cast<int>(flags.Int("num_workers"));
  spec.num_ps = static_cast<int>(flags.Int("num_ps_pods"));
  spec.num_evaluators = static_cast<int>(flags.Int("num_evaluators"));
  spec.attach_workers = flags.Bool("attach_workers");
  spec.token_file = flags.String("token_file");
  spec.master_port = static_cast<int>(flags.Int("master_port"));
  spec.master_http_port = static_cast<int>(flags.Int("master_http_port"));
  spec.metrics_without_token = flags.Bool("metrics_without_token");
  spec.need_tf_config = flags.Bool("need_tf_config");
  spec.minibatch_size = flags.Int("minibatch_size");
  spec.num_minibatches_per_task = flags.Int("num_minibatches_per_task");
  spec.num_epochs = flags.Int("num_epochs");
  spec.max_step = flags.Int("max_step");
  spec.max_bad_shards = flags.Int("max_bad_shards");
  spec.need_task_manager = flags.Bool("need_task_manager");
  spec.task_fault_tolerance = flags.Bool("task_fault_tolerance");
  spec.relaunch_on_worker_failure = static_cast<int>(flags.Int("relaunch_on_worker_failure"));
  spec.ps_relaunch_max_num = static_cast<int>(flags.Int("ps_relaunch_max_num"));
  spec.ps_is_critical = flags.Bool("ps_is_critical");
  spec.relaunch_timeout_worker = flags.Bool("relaunch_timeout_worker");
  spec.launch_worker_after_ps_running = flags.String("launch_worker_after_ps_running") == "on";
  spec.evaluator_grace_secs = flags.Int("evaluator_grace_secs");
  spec.own_ps = flags.String("ps_program") == "elasticdl" || IsModelJob(flags);
  spec.ps_lanes = flags.Int("ps_lanes");
  spec.ps_silence_secs = flags.Int("ps_silence_secs");
  spec.recovery_checkpoint_secs = flags.Int("recovery_checkpoint_secs");
  spec.checkpoint_steps = flags.Int("checkpoint_steps");
  spec.keep_checkpoint_max = flags.Int("keep_checkpoint_max");
  spec.checkpoint_dir = flags.String("checkpoint_dir");
  spec.checkpoint_dir_for_init = flags.String("checkpoint_dir_for_init");
  const bool use_async = flags.Bool("use_async");
  // With one gradient there are no rounds, as in the original.
  if (!use_async && flags.Int("grads_to_wait") > 1) spec.grads_to_wait = flags.Int("grads_to_wait");
  spec.sync_version_tolerance = flags.Int("sync_version_tolerance");
  spec.lr_staleness_modulation = use_async && flags.Bool("lr_staleness_modulation");
  spec.max_staleness = flags.Int("max_staleness");
  // Published clients cannot report which parameters a shard was pushed to.
  spec.compat_api = flags.String("compat_api") == "on" && !spec.own_ps;
  spec.log_level = FromChoice<LogLevel>(kLevels, flags.String("log_level"));
}

Status CheckCommand(const FlagValues& flags, const JobSpec& spec) {
  if (flags.String("job_type") != NameOf(ModelJobType::kTraining)) {
    return InvalidArgument(
        "there is no model: give --model_def=FOLDER.FILE.SYMBOL (a --job_command cannot be "
        "evaluated)");
  }
  if (Trim(spec.job_command).empty()) {
    return InvalidArgument(
        "there is nothing to run: give --model_def=FOLDER.FILE.SYMBOL, a Keras model, or "
        "--job_command=COMMAND, the command of every replica");
  }
  return Ok();
}

Status ReadModel(const FlagValues& flags, JobSpec& spec) {
  EDL_ASSIGN_OR_RETURN(spec.model, ReadModelSpec(flags));
  if (spec.num_evaluators > 0) {
    return InvalidArgument(
        "--num_evaluators={}: the workers evaluate a model of --model_def; remove the flag",
        spec.num_evaluators);
  }
  if (!spec.need_task_manager) {
    return InvalidArgument(
        "--need_task_manager=false with --model_def: the workers read shards that the master "
        "leases; remove the flag");
  }
  if (spec.num_ps > 0) return Ok();
  if (flags.given("num_ps_pods")) {
    return InvalidArgument(
        "--num_ps_pods=0 with --model_def: parameter servers keep the parameters of the model; "
        "give 1 or more, or omit the flag for 1");
  }
  spec.num_ps = 1;
  return Ok();
}

Status CheckAttachedWorkers(const JobSpec& spec) {
  const bool in_cluster = spec.backend == BackendKind::kKubernetes;
  if (spec.master_port != 0 && in_cluster) {
    return InvalidArgument(
        "--master_port={} with --backend=kubernetes: the master of a pod always has port 50001; "
        "remove the flag",
        spec.master_port);
  }
  if (spec.master_http_port != 0 && in_cluster) {
    return InvalidArgument(
        "--master_http_port={} with --backend=kubernetes: the master of a pod always has port "
        "50002; remove the flag",
        spec.master_http_port);
  }
  if (!spec.attach_workers) {
    if (spec.token_file.empty()) return Ok();
    return InvalidArgument(
        "--token_file={} without --attach_workers=true: only workers that attach send a token from "
        "a file; remove the flag, or add --attach_workers=true",
        spec.token_file);
  }
  if (in_cluster) {
    return InvalidArgument(
        "--attach_workers=true with --backend=kubernetes: workers attach only on the machine of "
        "the master; give --backend=local, or remove --attach_workers");
  }
  if (!spec.model) {
    return InvalidArgument(
        "--attach_workers=true needs --model_def=FOLDER.FILE.SYMBOL: a worker that attaches runs "
        "a model; remove --attach_workers for a job with --job_command");
  }
  return Ok();
}

Status CheckStrategy(const FlagValues& flags) {
  if (flags.String("distribution_strategy") != "AllreduceStrategy") return Ok();
  return InvalidArgument(
      "--distribution_strategy=AllreduceStrategy: this version has no all-reduce. A program that "
      "combines gradients itself does not need the flag; for parameter servers give "
      "--distribution_strategy=ParameterServerStrategy");
}

Status CheckCounts(const JobSpec& spec) {
  if (spec.need_tf_config && spec.num_evaluators > 1) {
    return InvalidArgument("--num_evaluators={}: TensorFlow supports at most one evaluator",
                           spec.num_evaluators);
  }
  if (spec.own_ps && spec.num_ps == 0) {
    return InvalidArgument(
        "--ps_program=elasticdl needs at least one parameter server: give --num_ps_pods=N");
  }
  if (spec.own_ps && spec.need_tf_config) {
    return InvalidArgument(
        "--ps_program=elasticdl with --need_tf_config=true: TF_CONFIG is for TensorFlow's own "
        "parameter servers; remove one of the two flags");
  }
  if (spec.own_ps && !spec.ps_is_critical) {
    return InvalidArgument(
        "--ps_is_critical=false with --ps_program=elasticdl: every worker needs every parameter "
        "server, so a job that lost one would wait forever; remove --ps_is_critical, or "
        "raise --ps_relaunch_max_num");
  }
  if (spec.num_workers == 0 && !spec.need_tf_config) {
    return InvalidArgument(
        "--num_workers=0: the job would have no worker; give at least 1 (a job with "
        "--need_tf_config=true may have 0, because its chief trains)");
  }
  return Ok();
}

}  // namespace

Result<CriticalWorkers> ParseCriticalWorkers(std::string_view text) {
  CriticalWorkers out;
  text = Trim(text);
  if (text.empty() || text == "default") return out;
  if (text == "none") {
    out.kind = CriticalWorkers::Kind::kNone;
    return out;
  }
  out.kind = CriticalWorkers::Kind::kListed;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const std::string_view piece = text.substr(begin, comma - begin);
    int index = 0;
    int relaunches = 0;
    const char* end = piece.data() + piece.size();
    const auto first = std::from_chars(piece.data(), end, index);
    const bool has_colon = first.ec == std::errc() && first.ptr != end && *first.ptr == ':';
    const auto second = has_colon ? std::from_chars(first.ptr + 1, end, relaunches) : first;
    if (!has_colon || second.ec != std::errc() || second.ptr != end || index < 0 ||
        relaunches < 0) {
      return InvalidArgument("'{}'{}: expected INDEX:RELAUNCHES, default or none", piece,
                             At(begin + 1));
    }
    if (!out.relaunches.emplace(index, relaunches).second) {
      return InvalidArgument("worker {}{} is given twice", index, At(begin + 1));
    }
    begin = comma + 1;
  }
  return out;
}

std::string JobSpec::ClusterCheckpointDir() const {
  if (!checkpoint_dir.empty()) return checkpoint_dir;
  for (const Volume& volume : volumes) {
    if (!volume.claim_name.empty()) return volume.mount_path + "/.elasticdl/checkpoints";
  }
  return "";
}

std::string JobSpec::ReplicaName(Role role, int64_t id) const {
  return job::ReplicaName(job_name, role, id, model ? Naming::kModel : Naming::kCommand);
}

int JobSpec::CountOf(Role role) const {
  switch (role) {
    case Role::kMaster:
      return 1;
    case Role::kWorker:
      return num_workers;
    case Role::kPs:
      return num_ps;
    case Role::kChief:
      return need_tf_config ? 1 : 0;
    case Role::kEvaluator:
      return num_evaluators;
  }
  return 0;
}

Result<JobSpec> MakeJobSpec(const FlagValues& flags) {
  JobSpec spec;
  ReadPlainValues(flags, spec);
  EDL_RETURN_IF_ERROR(CheckJobName(spec.job_name));
  if (IsModelJob(flags)) {
    EDL_RETURN_IF_ERROR(ReadModel(flags, spec));
  } else {
    EDL_RETURN_IF_ERROR(CheckCommand(flags, spec));
  }
  EDL_RETURN_IF_ERROR(CheckAttachedWorkers(spec));
  EDL_RETURN_IF_ERROR(CheckStrategy(flags));
  EDL_RETURN_IF_ERROR(CheckCounts(spec));
  EDL_RETURN_IF_ERROR(ReadMiniLanguages(flags, spec));
  return spec;
}

std::vector<std::string> ShellCommand(const std::string& job_command) {
  return {"/bin/bash", "-c", "set -o pipefail;" + job_command};
}

std::string_view LevelName(LogLevel level) { return kLevels.at(static_cast<size_t>(level)); }

}  // namespace edl::job
