#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "job/ids.h"

namespace edl::job {

// The states of docs/states/job.md.
enum class JobState { kStarting, kRunning, kFinishing, kSucceeded, kFailed, kStopped };
std::string_view NameOf(JobState state);
// nullopt: not the name of a state.
std::optional<JobState> JobStateFromName(std::string_view name);
// True for kSucceeded, kFailed and kStopped, which never change again.
bool IsFinal(JobState state);
// Whether replicas may still train: the job is starting or running.
bool MayTrain(JobState state);

// The states of docs/states/replica.md.
enum class ReplicaState { kPending, kRunning, kSucceeded, kFailed, kKilled, kStopped };
std::string_view NameOf(ReplicaState state);
// Whether the replica's process has exited, for whatever reason.
bool HasEnded(ReplicaState state);

struct ReplicaView {
  std::string name;
  std::string role;
  int index = 0;
  int64_t id = 0;
  ReplicaState state = ReplicaState::kPending;
  int64_t process_id = 0;
  std::string reason;  // why it is pending, or how it ended
  int64_t leases = 0;
};

struct DatasetView {
  std::string name;
  std::string
      task_type;  // "training", "evaluation", "prediction"; empty in views of older versions
  int64_t size = 0;
  int64_t epochs = 0;         // 0: unlimited
  int64_t epoch = 0;          // the epoch that is leased, from 0
  int64_t records_done = 0;   // over all epochs
  int64_t records_total = 0;  // size * epochs; 0: unlimited
  int64_t shards_done = 0;
  int64_t leases = 0;
  int64_t shards_repeated = 0;      // leased again after a failure or a loss
  int64_t shards_quarantined = 0;   // failed too often
  int64_t records_not_trained = 0;  // of shards that were not completed when the programs ended
  bool finished = false;

  bool IsTraining() const { return task_type.empty() || task_type == "training"; }
};

// An evaluation of a job with --model_def.
struct EvaluationView {
  int64_t version = 0;                    // of the job when the evaluation began
  std::string text;                       // the metrics as Python shows them, on one line
  std::map<std::string, double> metrics;  // "accuracy", or "output.accuracy"; may be NaN
};
// A list of evaluations as JSON. InvalidArgument: it cannot be parsed.
std::string ToJson(const std::vector<EvaluationView>& evaluations);
Result<std::vector<EvaluationView>> EvaluationsFromJson(std::string_view text);

// A parameter server (--ps_program=elasticdl) as it last reported itself.
struct ServerView {
  int index = 0;
  PsIncarnation incarnation;  // 0: it has not reported yet
  PsEpoch ps_epoch;           // 0: it does not serve
  int64_t rows = 0;
  int64_t bytes = 0;
  int64_t evicted = 0;
  int64_t opens_waiting = 0;  // workers that wait for the first checkpoint
  bool leaving = false;       // it is being stopped, and waits until its parameters are saved
  std::string reason;         // why it does not serve or answer; empty: it serves
  double rows_pulled_per_s = 0;
  double rows_pushed_per_s = 0;
};

// The status of a job, as `elasticdl status --output=json` prints it and status.json in a job's
// folder stores it. Only this class reads and writes the format.
struct JobView {
  // The version of the JSON. A reader rejects a newer version and accepts an older one.
  static constexpr int64_t kVersion = 1;

  std::string name;
  JobState state = JobState::kStarting;
  std::string reason;                   // why the job failed or was stopped, and by which replica
  std::string success_rule;             // the rule by which the job succeeded: docs/states/job.md
  std::string paused;                   // why the master answers no calls now; empty: it does
  std::vector<std::string> last_lines;  // of the log of the replica that failed the job
  std::vector<std::string> remarks;     // further lines of the summary
  double started_at = 0;                // seconds since 1970
  double ended_at = 0;                  // 0: not yet
  double ran_seconds = 0;               // on the monotonic clock; 0: not known
  double updated_at = 0;                // when the master made this view; 0: not known
  int64_t version = 0;                  // distinct completed batches
  int64_t relaunches = 0;
  int64_t master_starts = 0;
  int64_t master_process_id = 0;  // 0: not known
  std::string http_address;       // where the master serves /metrics; empty: nowhere
  std::vector<DatasetView> datasets;
  std::vector<ReplicaView> replicas;      // all active ones, and the newest of those that ended
  int64_t replicas_left_out = 0;          // how many are not in `replicas`
  std::vector<ServerView> servers;        // with --ps_program=elasticdl
  std::string checkpoint;                 // the newest checkpoint of `servers`
  std::map<std::string, double> metrics;  // the last "loss", "step"; may be NaN or infinite
  std::string evaluation;                 // the last one: "accuracy = 0.96, ... (global step 470)"
  std::vector<EvaluationView> evaluations;  // with --model_def: the last ones, oldest first
  int64_t checkpoint_step = -1;             // step of the last checkpoint; -1: none
  int64_t evaluated_step = -1;              // step of the last evaluated checkpoint; -1: none

  std::string ToJson(int indent = 2) const;  // -1: on one line
  // FailedPrecondition: a newer version wrote it. InvalidArgument: it cannot be parsed.
  static Result<JobView> FromJson(std::string_view text);
};

}  // namespace edl::job
