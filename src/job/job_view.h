#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace edl::job {

// docs/states/job.md. kSucceeded, kFailed and kStopped are final.
enum class JobState { kStarting, kRunning, kFinishing, kSucceeded, kFailed, kStopped };
std::string_view NameOf(JobState state);
// nullopt: no state has that name.
std::optional<JobState> JobStateFromName(std::string_view name);
bool IsFinal(JobState state);

// docs/states/replica.md.
enum class ReplicaState { kPending, kRunning, kSucceeded, kFailed, kKilled, kStopped };
std::string_view NameOf(ReplicaState state);

struct ReplicaView {
  std::string name;
  std::string role;
  int index = 0;
  int64_t id = 0;
  ReplicaState state = ReplicaState::kPending;
  int64_t process_id = 0;
  std::string reason;  // why it waits, or how it ended
  int64_t leases = 0;
};

struct DatasetView {
  std::string name;
  std::string task_type;
  int64_t size = 0;
  int64_t epochs = 0;         // 0: without end
  int64_t epoch = 0;          // being leased, from 0
  int64_t records_done = 0;   // over all epochs
  int64_t records_total = 0;  // size * epochs; 0: without end
  int64_t shards_done = 0;
  int64_t leases = 0;
  int64_t shards_repeated = 0;      // leased again after a loss
  int64_t shards_quarantined = 0;   // failed too often by their own fault
  int64_t records_not_trained = 0;  // left over by programs that ended before
  bool finished = false;
};

// A parameter server of ours, as it last spoke of itself.
struct ServerView {
  int index = 0;
  uint64_t incarnation = 0;  // 0: it has not spoken yet
  uint64_t ps_epoch = 0;     // that it serves in; 0: it does not serve
  int64_t rows = 0;
  int64_t bytes = 0;
  int64_t evicted = 0;
  int64_t opens_waiting = 0;  // workers that wait for the first checkpoint
  bool leaving = false;       // it was told to end, and waits to be saved
  std::string reason;         // why it does not serve, or does not answer; empty: it does
  double rows_pulled_per_s = 0;
  double rows_pushed_per_s = 0;
};

// A job as people and scripts see it: `elasticdl status --output=json`, and the file
// status.json of a job's folder. The one place that knows this format.
struct JobView {
  // The version of the JSON. A reader rejects a newer version and accepts an older one.
  static constexpr int64_t kVersion = 1;

  std::string name;
  JobState state = JobState::kStarting;
  std::string reason;                   // of a failure or a stop: which replica, why
  std::string success_rule;             // why a job that succeeded did: docs/states/job.md
  std::string paused;                   // why nothing is answered now; empty: it is
  std::vector<std::string> last_lines;  // of the log of the replica that failed the job
  std::vector<std::string> remarks;     // what the summary adds: "evaluator did not judge ..."
  double started_at = 0;                // seconds since 1970
  double ended_at = 0;                  // 0: not yet
  double ran_seconds = 0;               // by the monotonic clock; 0: not known
  double updated_at = 0;                // when the master made this view; 0: nobody said
  int64_t version = 0;                  // distinct completed batches
  int64_t relaunches = 0;
  int64_t master_starts = 0;
  int64_t master_process_id = 0;  // 0: nobody said
  std::vector<DatasetView> datasets;
  std::vector<ReplicaView> replicas;      // all that are active, and the newest of the ended
  int64_t replicas_left_out = 0;          // that are not in `replicas`
  std::vector<ServerView> servers;        // where parameter servers of ours keep the parameters
  std::string checkpoint;                 // of them, the newest
  std::map<std::string, double> metrics;  // last known: "loss", "step"; any may be NaN or infinite
  std::string evaluation;                 // last line: "accuracy = 0.96, ... (global step 470)"
  int64_t checkpoint_step = -1;           // last checkpoint saved
  int64_t evaluated_step = -1;            // last checkpoint judged

  std::string ToJson(int indent = 2) const;  // -1: in one line
  // FailedPrecondition: of a newer version. InvalidArgument: not a view.
  static Result<JobView> FromJson(std::string_view text);
};

}  // namespace edl::job
