#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/flags.h"
#include "base/log.h"
#include "base/status.h"
#include "job/model_spec.h"
#include "job/resources.h"
#include "job/role.h"
#include "job/volume.h"

namespace edl::job {

enum class BackendKind { kAuto, kLocal, kKubernetes };

// --critical_worker_index: the workers that fail the job when they fail more often than
// `relaunches`.
struct CriticalWorkers {
  enum class Kind {
    kDefault,  // worker 0 if TensorFlow's ps keeps the parameters
    kNone,
    kListed,
  };
  Kind kind = Kind::kDefault;
  std::map<int, int> relaunches;  // kListed: by worker index
  bool operator==(const CriticalWorkers&) const = default;
};
Result<CriticalWorkers> ParseCriticalWorkers(std::string_view text);

// The resources of each replica of a role.
struct RoleResources {
  Resources request;
  Resources limit;  // as given, else the request
  // The memory that a flag limits or requests. 0: no flag does; the default is a hint for
  // schedulers and no reason to kill a process on this machine.
  int64_t memory_limit_bytes = 0;
};

// A job as its user specifies it, validated: everything that the master and the backends need.
// docs/flags.md explains each flag.
struct JobSpec {
  std::string job_name;
  BackendKind backend = BackendKind::kAuto;
  bool detach = false;
  bool resume = false;

  // The id of the submission, 32 hexadecimal digits: new for each `train`, kept by `--resume`.
  // Ledgers and checkpoints with another id belong to another job. Empty: an older version
  // submitted the job.
  std::string submission_id;
  bool resumed = false;        // the master was started by `train --resume`
  int64_t resume_number = 0;   // how often the job was resumed; a ledger accepts each number once
  int64_t resume_version = 0;  // completed batches in the status at the last resume
  int resume_workers = 0;      // --num_workers of the last resume; 0: not given

  // What runs: a command, or the workers of a model.
  std::string job_command;
  std::optional<ModelSpec> model;
  std::string log_file_path;  // Kubernetes: a copy of each replica's output
  int num_workers = 0;
  int num_ps = 0;
  int num_evaluators = 0;
  bool attach_workers = false;  // workers are not launched; processes of this machine attach
  // The master only serves data shards: a TFJob runs the replicas, and their processes join.
  bool external_replicas = false;
  std::string token_file;  // attaching needs the job's token, which is in it; empty: it does not
  bool need_tf_config = false;
  std::map<std::string, std::string> envs;
  std::string populate_env_names;  // a regular expression that matches whole names
  std::vector<Volume> volumes;
  std::map<Role, RoleResources> resources;  // of every role

  // Data.
  int64_t minibatch_size = 0;            // for datasets registered without a batch size
  int64_t num_minibatches_per_task = 0;  // for datasets registered without batches per shard
  int64_t num_epochs = 0;                // for datasets registered without epochs; <= 0: unlimited
  int64_t max_step = 0;                  // 0: no limit
  int64_t max_bad_shards = 0;
  bool need_task_manager = true;     // false: the master leases no shards
  bool task_fault_tolerance = true;  // false: a shard that fails or is lost is not leased again

  // Failures and the end of the job.
  int relaunch_on_worker_failure = 0;
  int ps_relaunch_max_num = 0;
  bool ps_is_critical = true;
  CriticalWorkers critical_workers;
  bool relaunch_timeout_worker = false;
  bool launch_worker_after_ps_running = false;  // for workers other than worker 0
  int64_t evaluator_grace_secs = 0;

  // Parameter servers with --ps_program=elasticdl.
  bool own_ps = false;
  int64_t ps_lanes = 0;                   // 0: default_ps_lanes
  int64_t default_ps_lanes = 1;           // set by the master when the job starts
  int64_t ps_silence_secs = 15;           // a server silent for this long is replaced; 0: never
  int64_t recovery_checkpoint_secs = 30;  // 0: losing a server fails the job
  int64_t checkpoint_steps = 0;           // 0: only recovery checkpoints
  int64_t keep_checkpoint_max = 0;        // of the checkpoints by steps; 0: all
  std::string checkpoint_dir;             // empty: in the job's folder
  std::string checkpoint_dir_for_init;    // of another job; empty: none
  int64_t grads_to_wait = 0;              // in a synchronous round; 0: no rounds
  int64_t sync_version_tolerance = 0;
  bool lr_staleness_modulation = false;
  int64_t max_staleness = 0;  // in batches; 0: no worker waits for the slowest

  int master_port = 0;       // on this machine; 0: any free port
  int master_http_port = 0;  // on this machine; 0: any free port; -1: no HTTP
  bool metrics_without_token = false;
  bool compat_api = true;
  LogLevel log_level = LogLevel::kInfo;

  // Where a job in a cluster saves checkpoints: --checkpoint_dir, else a folder on its volume
  // claim. Empty: nowhere.
  std::string ClusterCheckpointDir() const;

  std::string ReplicaName(Role role, int64_t id) const;

  // The number of replicas of `role`. A job with TF_CONFIG has one chief.
  int CountOf(Role role) const;
};

// Makes the job that the flags of TrainFlags() describe. InvalidArgument: the message names the
// flag, its value and what to do.
Result<JobSpec> MakeJobSpec(const FlagValues& flags);

// The command line of a replica that runs --job_command: bash with pipefail, as in the original.
std::vector<std::string> ShellCommand(const std::string& job_command);

// "DEBUG", "INFO", ...: the values of --log_level.
std::string_view LevelName(LogLevel level);

}  // namespace edl::job
