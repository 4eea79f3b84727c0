#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/flags.h"
#include "base/log.h"
#include "base/status.h"
#include "job/resources.h"
#include "job/role.h"
#include "job/volume.h"

namespace edl::job {

enum class BackendKind { kAuto, kLocal, kKubernetes };

// --critical_worker_index: whose failure beyond `relaunches` fails the job.
struct CriticalWorkers {
  enum class Kind {
    kDefault,  // worker 0 where TensorFlow's ps holds the parameters
    kNone,
    kListed,
  };
  Kind kind = Kind::kDefault;
  std::map<int, int> relaunches;  // kListed: by worker index
  bool operator==(const CriticalWorkers&) const = default;
};
Result<CriticalWorkers> ParseCriticalWorkers(std::string_view text);

// What one role's replicas get.
struct RoleResources {
  Resources request;
  Resources limit;  // as given, else the request
  // Memory that the user spoke of, by limit or request; 0: only our default did, which is a
  // scheduler's hint and no reason to kill a process on this machine.
  int64_t memory_limit_bytes = 0;
};

// A job as its user wants it: everything that the master and the backends need, checked.
// docs/flags.md says what each flag means.
struct JobSpec {
  std::string job_name;
  BackendKind backend = BackendKind::kAuto;
  bool detach = false;
  bool resume = false;

  // Which submission this is, 32 hexadecimal digits: new for each `train`, kept by `--resume`.
  // Ledgers and checkpoints of another one are not this job's. Empty: nobody said.
  std::string submission_id;
  bool resumed = false;        // the master was started by `train --resume`
  int64_t resume_number = 0;   // how often that was typed; a ledger takes up each number once
  int64_t resume_version = 0;  // completed batches that the status knew then
  int resume_workers = 0;      // --num_workers as typed then; 0: as many as before

  // What runs.
  std::string job_command;
  std::string log_file_path;  // on Kubernetes: where a replica's output goes too
  int num_workers = 0;
  int num_ps = 0;
  int num_evaluators = 0;
  bool need_tf_config = false;
  std::map<std::string, std::string> envs;
  std::string populate_env_names;  // a regular expression for whole names
  std::vector<Volume> volumes;
  std::map<Role, RoleResources> resources;  // of every role

  // Data.
  int64_t minibatch_size = 0;            // of datasets that are registered without a batch size
  int64_t num_minibatches_per_task = 0;  // of those registered without batches per shard
  int64_t num_epochs = 0;                // of those registered without epochs; <= 0: without end
  int64_t max_step = 0;                  // 0: no limit
  int64_t max_bad_shards = 0;
  bool need_task_manager = true;     // false: the master leases no shards
  bool task_fault_tolerance = true;  // false: a shard that fails or is lost is not leased again

  // What happens when something dies or ends.
  int relaunch_on_worker_failure = 0;
  int ps_relaunch_max_num = 0;
  bool ps_is_critical = true;
  CriticalWorkers critical_workers;
  bool relaunch_timeout_worker = false;
  bool launch_worker_after_ps_running = false;  // of workers other than 0
  int64_t evaluator_grace_secs = 0;

  // Parameters that servers of ours keep.
  bool own_ps = false;
  int64_t ps_lanes = 0;                   // 0: default_ps_lanes
  int64_t default_ps_lanes = 1;           // as the master finds out when the job begins
  int64_t ps_silence_secs = 15;           // a server that answers not so long is replaced; 0: never
  int64_t recovery_checkpoint_secs = 30;  // 0: losing a server fails the job
  int64_t checkpoint_steps = 0;           // 0: none but those for recovery
  int64_t keep_checkpoint_max = 0;        // of those by steps; 0: all
  std::string checkpoint_dir;             // empty: in the job's folder
  std::string checkpoint_dir_for_init;    // of another job; empty: none
  int64_t grads_to_wait = 0;              // in a synchronous round; 0: there are none
  int64_t sync_version_tolerance = 0;
  bool lr_staleness_modulation = false;
  int64_t max_staleness = 0;  // batches; 0: no worker waits for the slowest

  bool compat_api = true;
  LogLevel log_level = LogLevel::kInfo;

  // Where a job in a cluster saves the parameters that servers of ours keep: --checkpoint_dir, else
  // on its claim. Empty: nowhere.
  std::string ClusterCheckpointDir() const;

  // How many replicas of `role` the job has when all run. A job with TF_CONFIG has one chief.
  int CountOf(Role role) const;
};

// The job that the flags of TrainFlags() describe. InvalidArgument: one clause that names the flag,
// the value and the way out.
Result<JobSpec> MakeJobSpec(const FlagValues& flags);

// The command of every replica with a --job_command, as the original runs it.
std::vector<std::string> ShellCommand(const std::string& job_command);

}  // namespace edl::job
