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
           .help = "Read flags from this YAML or JSON file. Flags on the command line override it.",
           .value_name = "PATH",
           .letter = 'f',
           .common = true,
           .not_in_original = true},
          {.name = "backend",
           .default_value = "auto",
           .group = kJob,
           .help = "Where the job runs. auto: on Kubernetes if a cluster is configured and "
                   "--image_name is given, "
                   "else on this machine; `train` prints the choice.",
           .choices = {"auto", "local", "kubernetes"},
           .environment = "ELASTICDL_BACKEND",
           .common = true,
           .not_in_original = true},
          {.name = "detach",
           .type = kBool,
           .default_value = "false",
           .group = kJob,
           .help = "Return when the job runs; the job keeps running.",
           .common = true,
           .not_in_original = true},
          {.name = "wait",
           .type = kBool,
           .default_value = "false",
           .group = kJob,
           .help = "Show progress until the job has ended, and exit with its exit code.",
           .scope = kKubernetesScope,
           .common = true,
           .not_in_original = true},
          {.name = "resume",
           .type = kBool,
           .default_value = "false",
           .group = kJob,
           .help = "Resume the interrupted, stopped or failed job of this name.",
           .common = true,
           .not_in_original = true},
          {.name = "resume_with_lost_progress",
           .type = kBool,
           .default_value = "false",
           .group = kJob,
           .help = "With --resume: resume even if the ledger has fewer completed batches than "
                   "the job's status. The lost batches are trained again.",
           .not_in_original = true},
          {.name = "dry_run",
           .type = kBool,
           .default_value = "false",
           .group = kJob,
           .help = "Print the job as JSON and start nothing.",
           .common = true,
           .not_in_original = true},
          {.name = "envs",
           .group = kJob,
           .help = "Environment variables of the replicas: A=1,B=2. Values may contain commas and "
                   "'='. Also a JSON object.",
           .value_name = "K=V,...",
           .common = true,
           .redact = RedactEnvs},
          {.name = "populate_env_names",
           .group = kJob,
           .help = "A regular expression. Environment variables of the master whose whole name "
                   "matches are passed to the replicas.",
           .value_name = "REGEX"},
          {.name = "volume",
           .group = kJob,
           .help = "Volumes of the replicas: host_path=/a,mount_path=/data. Separate several with "
                   "';'. Also a JSON list of objects.",
           .value_name = "MOUNTS",
           .common = true},
          {.name = "log_level",
           .default_value = "INFO",
           .group = kJob,
           .help = "Messages below this level are not logged.",
           .choices = {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"},
           .upper_case = true},
          {.name = "log_file_path",
           .group = kJob,
           .help = "Also write a pod's output to this file. On this machine all output is in the "
                   "job's folder anyway.",
           .value_name = "PATH",
           .scope = kKubernetesScope},
          {.name = "master_port",
           .type = kInt,
           .default_value = "0",
           .group = kJob,
           .help = "The port of the master on this machine. 0: any free port. On Kubernetes the "
                   "master always has port 50001.",
           .value_name = "N",
           .at_least = 0,
           .at_most = 65535,
           .not_in_original = true},
          {.name = "master_http_port",
           .type = kInt,
           .default_value = "0",
           .group = kJob,
           .help = "The HTTP port of the master on this machine, which serves /metrics on "
                   "127.0.0.1. 0: any free port. -1: no HTTP. On Kubernetes it is always 50002.",
           .value_name = "N",
           .at_least = -1,
           .at_most = 65535,
           .not_in_original = true},
          {.name = "metrics_without_token",
           .type = kBool,
           .default_value = "false",
           .group = kJob,
           .help = "Serve /metrics of the master and of parameter servers without the job's token, "
                   "for a Prometheus that reads the metrics of many jobs.",
           .not_in_original = true},
          {.name = "compat_api",
           .default_value = "on",
           .group = kJob,
           .help = "Serve clients of the published elasticai_api, which send no token. On this "
                   "machine only processes of the job's user are served, on a cluster only the "
                   "job's replicas.",
           .choices = {"on", "off"},
           .not_in_original = true},
      });
}

// What `train` writes into a job's spec for the master. Hidden from users.
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
  out.push_back({.name = "job_type",
                 .default_value = "training",
                 .group = kJob,
                 .help = "Set by `elasticdl evaluate` and `elasticdl predict`.",
                 .choices = {"training", "evaluation", "prediction"},
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
  out.push_back(count("num_workers", "2", "The number of workers."));
  out.push_back(count("num_ps_pods", "0",
                      "The number of parameter servers. With --model_def, 1 if it is not given."));
  out.push_back(
      count("num_evaluators", "0", "The number of evaluators; at most 1 with --need_tf_config."));
  out.insert(
      out.end(),
      {
          {.name = "need_tf_config",
           .type = kBool,
           .default_value = "false",
           .group = kReplicas,
           .help = "Set TF_CONFIG for every replica. Such a job has one chief besides its workers.",
           .common = true},
          {.name = "ps_program",
           .default_value = "job_command",
           .group = kReplicas,
           .help = "What parameter servers run: job_command (--job_command, for TensorFlow's own "
                   "ps), or "
                   "elasticdl (`elasticdl ps`, for programs that use elasticdl.ParameterClient).",
           .choices = {"job_command", "elasticdl"},
           .not_in_original = true},
          {.name = "ps_lanes",
           .type = kInt,
           .default_value = "0",
           .group = kReplicas,
           .help =
               "Threads of each parameter server with --ps_program=elasticdl. 0: the cores in "
               "--ps_resource_limit or --ps_resource_request on a cluster, else the cores of the "
               "machine. Fixed when the job starts.",
           .value_name = "N",
           .at_least = 0,
           .at_most = 1024,
           .not_in_original = true},
          {.name = "attach_workers",
           .type = kBool,
           .default_value = "false",
           .group = kReplicas,
           .help = "true: the master starts no workers. Processes of the same user on this machine "
                   "attach to it and become workers (docs/keras.md). Needs --model_def.",
           .not_in_original = true},
          {.name = "token_file",
           .group = kReplicas,
           .help = "With --attach_workers: a file with the token of the job. Processes must send "
                   "this token to attach. Empty: the user of the process is checked, no token.",
           .value_name = "PATH",
           .not_in_original = true},
          {.name = "max_staleness",
           .type = kInt,
           .default_value = "0",
           .group = kReplicas,
           .help =
               "A worker that uses elasticdl.ShardTrainer waits while it is more than N batches "
               "ahead of the slowest worker. 0: no worker waits.",
           .value_name = "N",
           .at_least = 0,
           .at_most = kInt32Max,
           .not_in_original = true},
          {.name = "distribution_strategy",
           .default_value = "ParameterServerStrategy",
           .group = kReplicas,
           .help = "Accepted for compatibility, without an effect: --ps_program and "
                   "--need_tf_config decide "
                   "where parameters are kept. AllreduceStrategy is rejected, because this version "
                   "has no "
                   "all-reduce.",
           .choices = {"", "Local", "ParameterServerStrategy", "AllreduceStrategy",
                       "CustomStrategy"},
           .common = true},
          {.name = "launch_worker_after_ps_running",
           .default_value = "default",
           .group = kReplicas,
           .help = "on: launch workers other than worker 0 only when every ps is running. default: "
                   "the same as off.",
           .choices = {"default", "on", "off"}},
          {.name = "need_elasticdl_job_service",
           .type = kBool,
           .default_value = "false",
           .group = kReplicas,
           .help = "Train the Keras model of --model_def with ElasticDL's worker and parameter "
                   "servers. Not needed: --model_def without --job_command means the same.",
           .scope = kModelScope},
          {.name = "need_task_manager",
           .type = kBool,
           .default_value = "true",
           .group = kReplicas,
           .help = "false: the master leases no shards, and registering a dataset or requesting a "
                   "shard is an error. For programs that split their data themselves."},
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
           .help = "Records in a batch, for datasets that are registered without a batch size.",
           .value_name = "N",
           .at_least = 1,
           .at_most = kInt32Max},
          {.name = "num_minibatches_per_task",
           .type = kInt,
           .default_value = "8",
           .group = kData,
           .help = "Batches in a shard, for datasets that are registered without this number.",
           .value_name = "N",
           .at_least = 1,
           .at_most = kInt32Max},
          {.name = "num_epochs",
           .type = kInt,
           .default_value = "1",
           .group = kData,
           .help = "Passes over the data, for datasets that are registered without a number of "
                   "epochs. 0 or less: unlimited.",
           .value_name = "N",
           .at_most = kInt32Max},
          {.name = "training_data",
           .group = kData,
           .help = "The training data. Required.",
           .value_name = "PATH",
           .scope = kModelScope},
          {.name = "validation_data",
           .group = kData,
           .help = "The validation data. The model is evaluated on it every --evaluation_steps "
                   "and at the end.",
           .value_name = "PATH",
           .scope = kModelScope},
          {.name = "prediction_data",
           .group = kData,
           .help = "The records that `elasticdl predict` predicts.",
           .value_name = "PATH",
           .scope = kModelScope,
           .not_in_original = true},
          {.name = "data_reader_params",
           .group = kData,
           .help = "Parameters of the data reader: a=1; b='x'.",
           .value_name = "K=V;...",
           .scope = kModelScope},
          {.name = "custom_data_reader",
           .default_value = "custom_data_reader",
           .group = kData,
           .help = "The name of the data reader in the model module.",
           .value_name = "SYMBOL",
           .scope = kModelScope},
          {.name = "max_step",
           .type = kInt,
           .default_value = "0",
           .group = kData,
           .help =
               "Train at most this many versions. A program of --job_command must stop by itself; "
               "when it exits after this many steps, it has succeeded, even if data is left. 0: "
               "no limit.",
           .value_name = "N",
           .at_least = 0},
          {.name = "max_bad_shards",
           .type = kInt,
           .default_value = "0",
           .group = kData,
           .help = "The job fails when more than N shards are quarantined.",
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
           .help = "How often a worker is relaunched after it failed by itself. Being killed or "
                   "preempted does not count.",
           .value_name = "N",
           .at_least = 0,
           .at_most = kInt32Max,
           .common = true},
          {.name = "ps_relaunch_max_num",
           .type = kInt,
           .default_value = "1",
           .group = kFailures,
           .help = "How often a parameter server is relaunched after it failed by itself.",
           .value_name = "N",
           .at_least = 0,
           .at_most = kInt32Max},
          {.name = "ps_silence_secs",
           .type = kInt,
           .default_value = "15",
           .group = kFailures,
           .help = "With --ps_program=elasticdl: replace a parameter server that has not answered "
                   "for N seconds. 0: never.",
           .value_name = "N",
           .at_least = 0,
           .at_most = kInt32Max,
           .not_in_original = true},
          {.name = "ps_is_critical",
           .type = kBool,
           .default_value = "true",
           .group = kFailures,
           .help = "true: a ps that failed more often than --ps_relaunch_max_num allows fails the "
                   "job. false: the job continues without it; rejected with "
                   "--ps_program=elasticdl."},
          {.name = "critical_worker_index",
           .default_value = "default",
           .group = kFailures,
           .help = "Workers that fail the job when they fail more often than allowed: default "
                   "(worker 0 with TensorFlow's ps), none, or INDEX:RELAUNCHES,...",
           .value_name = "LIST"},
          {.name = "relaunch_timeout_worker",
           .type = kBool,
           .default_value = "false",
           .group = kFailures,
           .help = "Relaunch a worker that holds a shard for too long or sends no heartbeats."},
          {.name = "task_fault_tolerance",
           .type = kBool,
           .default_value = "true",
           .group = kFailures,
           .help = "true: lease a shard again when it failed or its worker was lost. false: "
                   "quarantine it at once; quarantined shards then never fail the job, whatever "
                   "--max_bad_shards is."},
          {.name = "evaluator_grace_secs",
           .type = kInt,
           .default_value = "60",
           .group = kFailures,
           .help = "How many seconds the evaluator may run after the last worker has ended, to "
                   "evaluate the last checkpoint.",
           .value_name = "N",
           .at_least = 0,
           .at_most = kInt32Max,
           .not_in_original = true},
      });
}

void AddResources(std::vector<FlagSpec>& out) {
  for (const std::string role : {"master", "worker", "ps", "chief", "evaluator"}) {
    const std::string one = (role == "evaluator" ? "an " : "a ") + role;
    out.push_back(
        {.name = role + "_resource_request",
         .default_value = role == "master" ? "cpu=0.1,memory=1024Mi" : "cpu=1,memory=4096Mi",
         .group = kResources,
         .help = "Resources that " + one + " requests: cpu=0.5,memory=1024Mi,gpu=1.",
         .value_name = "K=V,..."});
    out.push_back({.name = role + "_resource_limit",
                   .group = kResources,
                   .help = "Resources that " + one + " may use at most; empty: the request.",
                   .value_name = "K=V,..."});
  }
  out.push_back({.name = "enable_automate_memory",
                 .type = kBool,
                 .default_value = "true",
                 .group = kResources,
                 .help = "Set the memory of workers to what worker 0 uses.",
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
  add("model_def", "", "The Keras model to train: FOLDER.FILE.SYMBOL within the model zoo.");
  out.back().common = true;
  add("feed", "feed", "The function that turns records into features and labels.", {"dataset_fn"});
  add("loss", "loss", "The loss function.");
  add("optimizer", "optimizer", "The optimizer.");
  add("callbacks", "callbacks", "The training callbacks.");
  add("eval_metrics_fn", "eval_metrics_fn", "The function that returns the evaluation metrics.");
  add("prediction_outputs_processor", "PredictionOutputsProcessor",
      "The class that gets the outputs of `elasticdl predict`.");
  out.back().not_in_original = true;
  add("output", "", "Where to write the SavedModel after training.");
  out.push_back({.name = "tensorboard_log_dir",
                 .group = kModel,
                 .help = "Write loss and evaluation metrics for TensorBoard into this folder.",
                 .value_name = "PATH",
                 .scope = kModelScope,
                 .not_in_original = true});
  out.push_back({.name = "python",
                 .default_value = "python3",
                 .group = kModel,
                 .help = "The Python of the workers, which has TensorFlow and elasticdl.",
                 .value_name = "PROGRAM",
                 .environment = "ELASTICDL_PYTHON",
                 .scope = kModelScope,
                 .not_in_original = true});
  out.push_back({.name = "seed",
                 .type = kInt,
                 .default_value = "0",
                 .group = kModel,
                 .help = "The seed of initial dense parameters; 0: chosen at random.",
                 .value_name = "N",
                 .at_least = 0,
                 .at_most = kInt32Max,
                 .scope = kModelScope,
                 .not_in_original = true});
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
  number("get_model_steps", "1",
         "Pull dense parameters every N steps; without --use_async always every step.");
  number("grads_to_wait", "1",
         "Gradients in a synchronous round; 1: no rounds, each gradient is applied at once.");
  number("sync_version_tolerance", "0",
         "By how many rounds the parameters of a synchronous gradient may be old.");
  number("log_loss_steps", "100", "Log the loss every N steps.");
  const auto boolean = [&](std::string name, std::string help) {
    out.push_back({.name = std::move(name),
                   .type = kBool,
                   .default_value = "false",
                   .group = kModel,
                   .help = std::move(help),
                   .scope = kModelScope});
  };
  boolean("use_async", "Apply each gradient at once, whatever --grads_to_wait is.");
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
  number("evaluation_steps", "Evaluate every N versions; 0: only at the end.");
  number("checkpoint_steps", "Save a checkpoint every N versions; 0: never.");
  number("keep_checkpoint_max", "How many checkpoints to keep; 0: all.");
  folder("checkpoint_dir", "The folder of checkpoints.");
  folder("checkpoint_dir_for_init", "The checkpoint to start from: a version-N folder.");
  out.push_back({.name = "recovery_checkpoint_secs",
                 .type = kInt,
                 .default_value = "30",
                 .group = kCheckpoints,
                 .help =
                     "Save the parameters every N seconds, in addition to --checkpoint_steps. A "
                     "lost parameter server is restored from the last one. 0: losing a "
                     "parameter server fails the job.",
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
        role == "worker"
            ? "Priority class; or high, low, or the fraction of workers that get high, such as "
              "0.5."
        : role == "master" || role == "ps" ? "Priority class; empty: the highest of the job."
                                           : "Priority class.",
        "CLASS");
  }
  out.push_back({.name = "image_pull_policy",
                 .default_value = "Always",
                 .group = kCluster,
                 .help = "When the kubelet pulls images.",
                 .choices = {"Never", "IfNotPresent", "Always"},
                 .scope = kKubernetesScope});
  out.push_back(
      {.name = "restart_policy",
       .default_value = "Never",
       .group = kCluster,
       .help =
           "Whether the kubelet restarts a replica's container. It never restarts the master's.",
       .choices = {"Never", "OnFailure", "Always"},
       .scope = kKubernetesScope});
  out.push_back({.name = "image_pull_secrets",
                 .group = kCluster,
                 .help = "Names of secrets for pulling images.",
                 .value_name = "NAME,...",
                 .scope = kKubernetesScope,
                 .not_in_original = true});
  out.push_back({.name = "service_account",
                 .group = kCluster,
                 .help =
                     "The master's service account; empty: elasticdl-master if the namespace has "
                     "it, else the default one.",
                 .value_name = "NAME",
                 .scope = kKubernetesScope,
                 .not_in_original = true});
  out.push_back({.name = "env_secret",
                 .group = kCluster,
                 .help = "Environment variables of the replicas whose values are in secrets.",
                 .value_name = "NAME=SECRET/KEY,...",
                 .scope = kKubernetesScope,
                 .not_in_original = true});
  add("cluster_spec", "", "A Python file that adapts pods and services to the cluster.", "PATH");
  add("cluster_spec_json", "", "Changes of pods and services as JSON, plain or in base64.", "JSON");
  add("yaml", "", "Write the master's pod as YAML to this file and submit nothing.", "PATH");
  out.push_back({.name = "force_use_kube_config_file",
                 .type = kBool,
                 .default_value = "false",
                 .group = kCluster,
                 .help = "Use the kubeconfig also in a pod.",
                 .scope = kKubernetesScope});
  add("extra_pypi_index", "https://pypi.org/simple", "The index of Python packages for images.",
      "URL");
  add("aux_params", "", "disable_relaunch=true turns relaunching off.", "K=V;...");
}

// Flags that the original's documents still mention.
void AddOlder(std::vector<FlagSpec>& out) {
  for (const std::string name :
       {"image_base", "docker_image_repository", "model_params", "evaluation_start_delay_secs",
        "evaluation_throttle_secs", "restart_delay_secs", "custom_data_reader_params",
        "get_model_frequency", "use_go_ps"}) {
    out.push_back({.name = name,
                   .group = kOlder,
                   .help = "Accepted for old scripts, without an effect.",
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

bool IsParameterServerFlag(std::string_view flag) {
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
                     .help = "The folder of the job's token; empty: the job's folder.",
                     .value_name = "PATH",
                     .not_in_original = true});
    specs.push_back({.name = "port",
                     .type = kInt,
                     .default_value = "50001",
                     .group = kJob,
                     .help = "The port on which the master listens.",
                     .value_name = "N",
                     .at_least = 0,
                     .at_most = 65535,
                     .not_in_original = true});
    specs.push_back({.name = "external_replicas",
                     .type = kBool,
                     .default_value = "false",
                     .group = kJob,
                     .help = "Launch nothing: serve data shards to the replicas of a TFJob.",
                     .not_in_original = true});
    return specs;
  }());
  return table;
}

}  // namespace edl::job
