#include "job/train_flags.h"

#include <algorithm>
#include <array>
#include <limits>

#include "job/envs.h"

namespace edl::job {
namespace {

constexpr int64_t kInt32Max = std::numeric_limits<int32_t>::max();

constexpr char kJob[] = "Job";
constexpr char kReplicas[] = "Replicas";
constexpr char kData[] = "Data";
constexpr char kFailures[] = "Failures and the end of the job";
constexpr char kResources[] = "Resources";
constexpr char kModel[] = "Keras models";
constexpr char kCheckpoints[] = "Checkpoints and evaluation";
constexpr char kCluster[] = "Kubernetes";
constexpr char kOlder[] = "Older names";

using enum FlagType;

void AddJob(std::vector<FlagSpec>& out) {
  out.insert(
      out.end(),
      {
          {.name = "job_name",
           .group = kJob,
           .help = "The job's name: small letters, digits and '-'. Required.",
           .value_name = "NAME",
           .common = true},
          {.name = "job_command",
           .group = kJob,
           .help = "The shell command that every replica runs.",
           .value_name = "COMMAND",
           .common = true},
          {.name = "file",
           .group = kJob,
           .help = "Take flags from this YAML or JSON file; the command line wins over it.",
           .value_name = "PATH",
           .letter = 'f',
           .common = true,
           .not_in_original = true},
          {.name = "backend",
           .default_value = "auto",
           .group = kJob,
           .help = "Where the job runs; auto says which one it chose.",
           .choices = {"auto", "local", "kubernetes"},
           .environment = "ELASTICDL_BACKEND",
           .common = true,
           .not_in_original = true},
          {.name = "detach",
           .type = kBool,
           .default_value = "false",
           .group = kJob,
           .help = "Return once the job runs, and leave it running.",
           .common = true,
           .not_in_original = true},
          {.name = "wait",
           .type = kBool,
           .default_value = "false",
           .group = kJob,
           .help = "On Kubernetes: show progress until the job has ended, and exit as it did.",
           .scope = kKubernetesScope,
           .common = true,
           .not_in_original = true},
          {.name = "resume",
           .type = kBool,
           .default_value = "false",
           .group = kJob,
           .help = "Go on with an interrupted, stopped or failed job of this name.",
           .common = true,
           .not_in_original = true},
          {.name = "resume_with_lost_progress",
           .type = kBool,
           .default_value = "false",
           .group = kJob,
           .help = "With --resume: go on although the ledger knows fewer completed records than "
                   "the job's status; what is lost is trained again.",
           .not_in_original = true},
          {.name = "dry_run",
           .type = kBool,
           .default_value = "false",
           .group = kJob,
           .help = "Print the job as understood, as JSON, and start nothing.",
           .common = true,
           .not_in_original = true},
          {.name = "envs",
           .group = kJob,
           .help = "Environment of the replicas: A=1,B=2. Values may hold commas and '='; a JSON "
                   "object is taken too.",
           .value_name = "K=V,...",
           .common = true,
           .redact = RedactEnvs},
          {.name = "populate_env_names",
           .group = kJob,
           .help = "A regular expression: the master's variables with such names are handed on.",
           .value_name = "REGEX"},
          {.name = "volume",
           .group = kJob,
           .help = "What the replicas see where: host_path=/a,mount_path=/data. Several are "
                   "separated by ';'; a JSON list of objects is taken too.",
           .value_name = "MOUNTS",
           .common = true},
          {.name = "log_level",
           .default_value = "INFO",
           .group = kJob,
           .help = "What is below is not logged.",
           .choices = {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"},
           .upper_case = true},
          {.name = "log_file_path",
           .group = kJob,
           .help = "Also write a pod's output to this file. Without a cluster all output is kept "
                   "in the job's folder.",
           .value_name = "PATH",
           .scope = kKubernetesScope},
          {.name = "compat_api",
           .default_value = "on",
           .group = kJob,
           .help = "Serve clients of the published elasticai_api, which can send no token: on this "
                   "machine those of the job's user, on a cluster the job's replicas.",
           .choices = {"on", "off"},
           .not_in_original = true},
      });
}

// What `train` writes into a job's spec for the master; not for people.
void AddSubmission(std::vector<FlagSpec>& out) {
  const auto number = [](std::string name, int64_t at_most) {
    return FlagSpec{.name = std::move(name),
                    .type = kInt,
                    .default_value = "0",
                    .group = kJob,
                    .help = "Set by `elasticdl train`.",
                    .at_least = 0,
                    .at_most = at_most,
                    .not_in_original = true,
                    .hidden = true};
  };
  out.push_back({.name = "submission_id",
                 .group = kJob,
                 .help = "Set by `elasticdl train`.",
                 .not_in_original = true,
                 .hidden = true});
  out.push_back(number("resume_number", std::numeric_limits<int64_t>::max()));
  out.push_back(number("resume_version", std::numeric_limits<int64_t>::max()));
  out.push_back(number("resume_workers", 100'000));
}

void AddReplicas(std::vector<FlagSpec>& out) {
  const auto count = [](std::string name, std::string value, std::string help) {
    return FlagSpec{.name = std::move(name),
                    .type = kInt,
                    .default_value = std::move(value),
                    .group = kReplicas,
                    .help = std::move(help),
                    .value_name = "N",
                    .at_least = 0,
                    .at_most = 100'000,
                    .common = true};
  };
  out.push_back(count("num_workers", "2", "Workers."));
  out.push_back(count("num_ps_pods", "0", "Parameter servers."));
  out.push_back(count("num_evaluators", "0", "Evaluators; with TF_CONFIG one at most."));
  out.insert(
      out.end(),
      {
          {.name = "need_tf_config",
           .type = kBool,
           .default_value = "false",
           .group = kReplicas,
           .help = "Give every replica TF_CONFIG; such a job has one chief besides its workers.",
           .common = true},
          {.name = "ps_program",
           .default_value = "job_command",
           .group = kReplicas,
           .help =
               "What parameter servers run: job_command (TensorFlow's own), or elasticdl (ours: "
               "`elasticdl ps`, for programs that use elasticdl.ParameterClient).",
           .choices = {"job_command", "elasticdl"},
           .not_in_original = true},
          {.name = "ps_lanes",
           .type = kInt,
           .default_value = "0",
           .group = kReplicas,
           .help =
               "Threads of each of our parameter servers; 0: by --ps_resource_limit or "
               "--ps_resource_request in a cluster, else as many as the machine has cores. Decided "
               "once for a job.",
           .value_name = "N",
           .at_least = 0,
           .at_most = 1024,
           .not_in_original = true},
          {.name = "max_staleness",
           .type = kInt,
           .default_value = "0",
           .group = kReplicas,
           .help = "A worker of elasticdl.ShardTrainer that has trained more than N batches more "
                   "than the slowest waits for it; 0: none waits.",
           .value_name = "N",
           .at_least = 0,
           .at_most = kInt32Max,
           .not_in_original = true},
          {.name = "distribution_strategy",
           .default_value = "ParameterServerStrategy",
           .group = kReplicas,
           .help =
               "Accepted as the original's; --ps_program and --need_tf_config say who holds the "
               "parameters. AllreduceStrategy is refused: this version has no all-reduce.",
           .choices = {"", "Local", "ParameterServerStrategy", "AllreduceStrategy",
                       "CustomStrategy"},
           .common = true},
          {.name = "launch_worker_after_ps_running",
           .default_value = "default",
           .group = kReplicas,
           .help = "on: workers other than worker 0 are launched only when every ps runs. default: "
                   "off.",
           .choices = {"default", "on", "off"}},
          {.name = "need_elasticdl_job_service",
           .type = kBool,
           .default_value = "false",
           .group = kReplicas,
           .help = "Train a Keras model with our own worker and ps.",
           .scope = kModelScope},
          {.name = "need_task_manager",
           .type = kBool,
           .default_value = "true",
           .group = kReplicas,
           .help = "false: the master leases no shards; registering a dataset, and asking for "
                   "shards, is an error. For programs that divide their data themselves."},
          {.name = "need_pod_manager",
           .type = kBool,
           .default_value = "true",
           .group = kReplicas,
           .help = "Let the master launch the replicas.",
           .scope = kKubernetesScope},
      });
}

void AddData(std::vector<FlagSpec>& out) {
  out.insert(
      out.end(),
      {
          {.name = "minibatch_size",
           .type = kInt,
           .default_value = "64",
           .group = kData,
           .help = "Records in a batch, where a program registers a dataset without a batch size.",
           .value_name = "N",
           .at_least = 1,
           .at_most = kInt32Max},
          {.name = "num_minibatches_per_task",
           .type = kInt,
           .default_value = "8",
           .group = kData,
           .help = "Batches in a shard, where a program registers a dataset without it.",
           .value_name = "N",
           .at_least = 1,
           .at_most = kInt32Max},
          {.name = "num_epochs",
           .type = kInt,
           .default_value = "1",
           .group = kData,
           .help = "Passes over the data, where a program registers a dataset without epochs; 0 or "
                   "less: without end.",
           .value_name = "N",
           .at_most = kInt32Max},
          {.name = "training_data",
           .group = kData,
           .help = "What to train on.",
           .value_name = "PATH",
           .scope = kModelScope},
          {.name = "validation_data",
           .group = kData,
           .help = "What to evaluate on.",
           .value_name = "PATH",
           .scope = kModelScope},
          {.name = "data_reader_params",
           .group = kData,
           .help = "Parameters of the data reader: a=1; b='x'.",
           .value_name = "K=V;...",
           .scope = kModelScope},
          {.name = "custom_data_reader",
           .default_value = "custom_data_reader",
           .group = kData,
           .help = "The model module's data reader.",
           .value_name = "SYMBOL",
           .scope = kModelScope},
          {.name = "max_step",
           .type = kInt,
           .default_value = "0",
           .group = kData,
           .help = "A program that ends after this many steps has ended well, although data is "
                   "left; 0: it has not. The program itself has to stop.",
           .value_name = "N",
           .at_least = 0},
          {.name = "max_bad_shards",
           .type = kInt,
           .default_value = "0",
           .group = kData,
           .help = "Shards that may fail by their own fault before the job counts as failed.",
           .value_name = "N",
           .at_least = 0,
           .not_in_original = true},
      });
}

void AddFailures(std::vector<FlagSpec>& out) {
  out.insert(
      out.end(),
      {
          {.name = "relaunch_on_worker_failure",
           .type = kInt,
           .default_value = "1",
           .group = kFailures,
           .help = "How often a worker's slot is refilled after failures of its own making. Being "
                   "killed or preempted does not count.",
           .value_name = "N",
           .at_least = 0,
           .at_most = kInt32Max,
           .common = true},
          {.name = "ps_relaunch_max_num",
           .type = kInt,
           .default_value = "1",
           .group = kFailures,
           .help = "The same for a ps.",
           .value_name = "N",
           .at_least = 0,
           .at_most = kInt32Max},
          {.name = "ps_silence_secs",
           .type = kInt,
           .default_value = "15",
           .group = kFailures,
           .help = "One of our parameter servers that does not answer for so many seconds is "
                   "replaced; 0: never.",
           .value_name = "N",
           .at_least = 0,
           .at_most = kInt32Max,
           .not_in_original = true},
          {.name = "ps_is_critical",
           .type = kBool,
           .default_value = "true",
           .group = kFailures,
           .help = "A ps that failed more often than --ps_relaunch_max_num allows fails the job; "
                   "false: the job goes on without it. Not with --ps_program=elasticdl."},
          {.name = "critical_worker_index",
           .default_value = "default",
           .group = kFailures,
           .help = "Workers whose failure fails the job: default (worker 0 with a TensorFlow ps), "
                   "none, or INDEX:RELAUNCHES,...",
           .value_name = "LIST"},
          {.name = "relaunch_timeout_worker",
           .type = kBool,
           .default_value = "false",
           .group = kFailures,
           .help = "Relaunch a worker that holds a shard for too long, or is silent."},
          {.name = "task_fault_tolerance",
           .type = kBool,
           .default_value = "true",
           .group = kFailures,
           .help = "Lease a shard again when it fails or its worker is lost. false: it is "
                   "quarantined at once, and quarantined shards do not fail the job, whatever "
                   "--max_bad_shards says."},
          {.name = "evaluator_grace_secs",
           .type = kInt,
           .default_value = "60",
           .group = kFailures,
           .help = "How long the evaluator may go on after the last worker, at most, to judge the "
                   "last checkpoint.",
           .value_name = "N",
           .at_least = 0,
           .at_most = kInt32Max,
           .not_in_original = true},
      });
}

void AddResources(std::vector<FlagSpec>& out) {
  for (const std::string role : {"master", "worker", "ps", "chief", "evaluator"}) {
    out.push_back(
        {.name = role + "_resource_request",
         .default_value = role == "master" ? "cpu=0.1,memory=1024Mi" : "cpu=1,memory=4096Mi",
         .group = kResources,
         .help = "What a " + role + " asks for: cpu=0.5,memory=1024Mi,gpu=1.",
         .value_name = "K=V,..."});
    out.push_back({.name = role + "_resource_limit",
                   .group = kResources,
                   .help = "What a " + role + " may use at most; empty: the request.",
                   .value_name = "K=V,..."});
  }
  out.push_back({.name = "enable_automate_memory",
                 .type = kBool,
                 .default_value = "true",
                 .group = kResources,
                 .help = "Size the workers' memory by what worker 0 uses.",
                 .scope = kKubernetesScope});
}

void AddModel(std::vector<FlagSpec>& out) {
  const auto add = [&](std::string name, std::string value, std::string help,
                       std::vector<std::string> aliases = {}) {
    out.push_back({.name = std::move(name),
                   .default_value = std::move(value),
                   .group = kModel,
                   .help = std::move(help),
                   .value_name = "SYMBOL",
                   .aliases = std::move(aliases),
                   .scope = kModelScope});
  };
  add("model_zoo", "", "The folder of model modules.");
  add("model_def", "", "The model: folder.file.symbol within the model zoo.");
  add("feed", "feed", "The function that turns records into features and labels.", {"dataset_fn"});
  add("loss", "loss", "The loss function.");
  add("optimizer", "optimizer", "The optimizer.");
  add("callbacks", "callbacks", "Callbacks of the training.");
  add("eval_metrics_fn", "eval_metrics_fn", "The metrics of an evaluation.");
  add("output", "", "Where to write the SavedModel.");
  const auto number = [&](std::string name, std::string value, std::string help) {
    out.push_back({.name = std::move(name),
                   .type = kInt,
                   .default_value = std::move(value),
                   .group = kModel,
                   .help = std::move(help),
                   .value_name = "N",
                   .at_least = 0,
                   .at_most = kInt32Max,
                   .scope = kModelScope});
  };
  number("get_model_steps", "1", "Pull dense parameters every N steps.");
  number("grads_to_wait", "1", "Gradients in a synchronous round; 1: there are no rounds.");
  number("sync_version_tolerance", "0",
         "How many rounds old the parameters of a synchronous gradient may be.");
  number("log_loss_steps", "100", "Log the loss every N steps.");
  const auto boolean = [&](std::string name, std::string help) {
    out.push_back({.name = std::move(name),
                   .type = kBool,
                   .default_value = "false",
                   .group = kModel,
                   .help = std::move(help),
                   .scope = kModelScope});
  };
  boolean("use_async", "Apply each gradient as it comes, whatever --grads_to_wait says.");
  boolean("lr_staleness_modulation",
          "Divide the learning rate of an asynchronous gradient by its staleness.");
}

void AddCheckpoints(std::vector<FlagSpec>& out) {
  const auto number = [&](std::string name, std::string help) {
    out.push_back({.name = std::move(name),
                   .type = kInt,
                   .default_value = "0",
                   .group = kCheckpoints,
                   .help = std::move(help),
                   .value_name = "N",
                   .at_least = 0,
                   .at_most = kInt32Max,
                   .scope = kModelScope});
  };
  const auto folder = [&](std::string name, std::string help) {
    out.push_back({.name = std::move(name),
                   .group = kCheckpoints,
                   .help = std::move(help),
                   .value_name = "PATH",
                   .scope = kModelScope});
  };
  number("evaluation_steps", "Evaluate every N versions; 0: at the end only.");
  number("checkpoint_steps", "Save every N versions; 0: not.");
  number("keep_checkpoint_max", "Checkpoints to keep; 0: all.");
  folder("checkpoint_dir", "Where to save.");
  folder("checkpoint_dir_for_init", "The version-N folder to start from.");
  out.push_back({.name = "recovery_checkpoint_secs",
                 .type = kInt,
                 .default_value = "30",
                 .group = kCheckpoints,
                 .help = "Save parameters every so many seconds, besides --checkpoint_steps: a "
                         "parameter server that is lost is restored from it. 0: losing one fails "
                         "the job.",
                 .value_name = "N",
                 .at_least = 0,
                 .at_most = kInt32Max,
                 .not_in_original = true});
}

void AddCluster(std::vector<FlagSpec>& out) {
  const auto add = [&](std::string name, std::string value, std::string help,
                       std::string value_name) {
    out.push_back({.name = std::move(name),
                   .default_value = std::move(value),
                   .group = kCluster,
                   .help = std::move(help),
                   .value_name = std::move(value_name),
                   .scope = kKubernetesScope});
  };
  add("image_name", "", "The master's image.", "IMAGE");
  add("worker_image", "", "The workers' image; empty: --image_name.", "IMAGE");
  add("ps_image", "", "The ps's image; empty: --image_name.", "IMAGE");
  add("namespace", "default", "The namespace.", "NAME");
  for (const std::string role : {"master", "worker", "ps", "chief", "evaluator"}) {
    add(role + "_pod_priority", "",
        role == "worker" ? "Priority class; or high, low, or the fraction of workers that get high."
        : role == "master" || role == "ps" ? "Priority class; empty: the highest of the job."
                                           : "Priority class.",
        "CLASS");
  }
  out.push_back({.name = "image_pull_policy",
                 .default_value = "Always",
                 .group = kCluster,
                 .help = "When images are pulled.",
                 .choices = {"Never", "IfNotPresent", "Always"},
                 .scope = kKubernetesScope});
  out.push_back({.name = "restart_policy",
                 .default_value = "Never",
                 .group = kCluster,
                 .help = "Whether the kubelet restarts a replica's container; the master's never.",
                 .choices = {"Never", "OnFailure", "Always"},
                 .scope = kKubernetesScope});
  out.push_back({.name = "image_pull_secrets",
                 .group = kCluster,
                 .help = "Secrets with which images are pulled.",
                 .value_name = "NAME,...",
                 .scope = kKubernetesScope,
                 .not_in_original = true});
  out.push_back({.name = "service_account",
                 .group = kCluster,
                 .help = "The master's service account; empty: elasticdl-master where the "
                         "namespace has it, else its "
                         "default.",
                 .value_name = "NAME",
                 .scope = kKubernetesScope,
                 .not_in_original = true});
  out.push_back({.name = "env_secret",
                 .group = kCluster,
                 .help = "Variables of the replicas whose values lie in secrets.",
                 .value_name = "NAME=SECRET/KEY,...",
                 .scope = kKubernetesScope,
                 .not_in_original = true});
  add("cluster_spec", "", "A Python file that adapts pods to a cluster.", "PATH");
  add("cluster_spec_json", "", "The same as JSON, plain or base64.", "JSON");
  add("yaml", "", "Write the master's pod to this file and submit nothing.", "PATH");
  out.push_back({.name = "force_use_kube_config_file",
                 .type = kBool,
                 .default_value = "false",
                 .group = kCluster,
                 .help = "Use the kubeconfig even inside a cluster.",
                 .scope = kKubernetesScope});
  add("extra_pypi_index", "https://pypi.org/simple", "Where images get Python packages.", "URL");
  add("aux_params", "", "disable_relaunch=true turns relaunching off.", "K=V;...");
}

// Names that the original's documents still mention.
void AddOlder(std::vector<FlagSpec>& out) {
  for (const std::string name :
       {"image_base", "docker_image_repository", "model_params", "tensorboard_log_dir",
        "evaluation_start_delay_secs", "evaluation_throttle_secs", "restart_delay_secs",
        "custom_data_reader_params", "get_model_frequency", "use_go_ps"}) {
    out.push_back({.name = name,
                   .group = kOlder,
                   .help = "Accepted for old scripts.",
                   .value_name = "VALUE",
                   .scope = kObsoleteScope,
                   .not_in_original = true});
  }
}

std::vector<FlagSpec> TrainSpecs() {
  std::vector<FlagSpec> out;
  AddJob(out);
  AddSubmission(out);
  AddReplicas(out);
  AddData(out);
  AddFailures(out);
  AddResources(out);
  AddModel(out);
  AddCheckpoints(out);
  AddCluster(out);
  AddOlder(out);
  return out;
}

}  // namespace

bool IsOfServers(std::string_view flag) {
  constexpr std::array<std::string_view, 8> kFlags = {
      "checkpoint_steps", "keep_checkpoint_max",    "checkpoint_dir", "checkpoint_dir_for_init",
      "grads_to_wait",    "sync_version_tolerance", "use_async",      "lr_staleness_modulation"};
  return std::ranges::find(kFlags, flag) != kFlags.end();
}

const FlagTable& TrainFlags() {
  static const FlagTable table(TrainSpecs());
  return table;
}

const FlagTable& MasterFlags() {
  static const FlagTable table([] {
    std::vector<FlagSpec> specs = TrainSpecs();
    specs.push_back({.name = "job_dir",
                     .group = kJob,
                     .help = "The job's folder.",
                     .value_name = "PATH",
                     .not_in_original = true});
    specs.push_back({.name = "secret_dir",
                     .group = kJob,
                     .help = "Where the job's token lies; empty: in its folder.",
                     .value_name = "PATH",
                     .not_in_original = true});
    specs.push_back({.name = "port",
                     .type = kInt,
                     .default_value = "50001",
                     .group = kJob,
                     .help = "Where the master listens.",
                     .value_name = "N",
                     .at_least = 0,
                     .at_most = 65535,
                     .not_in_original = true});
    return specs;
  }());
  return table;
}

}  // namespace edl::job
