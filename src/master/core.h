#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "telemetry/curves.h"

#include "base/clock.h"
#include "base/status.h"
#include "job/job_spec.h"
#include "job/job_view.h"
#include "job/replica.h"
#include "master/api/compat_api.h"
#include "master/api/master_api.h"
#include "master/context.h"
#include "master/ledger/ledger.h"
#include "master/model/model_job.h"
#include "master/parameters/parameter_keeper.h"
#include "master/progress_log.h"
#include "master/replicas/replica_keeper.h"
#include "master/replicas/run_time.h"
#include "master/sessions/recent_calls.h"
#include "master/sessions/session.h"
#include "master/shards/dispatcher.h"
#include "master/sync/rendezvous.h"
#include "master/sync/staleness_tracker.h"
#include "master/sync/sync_primitives.h"
#include "master/telemetry/recorder.h"

namespace edl::master {

// The facade of all decisions of a master, without threads, sockets or processes. Services and the
// loop pass calls and events in. Each Commit makes the decisions durable, sends the answers and
// leaves commands for the backend. The caller passes the time, so a simulation can run years of it.
//
// Confined: call it on the master's loop.
class Core {
 public:
  // If the loop stalls, only this much of the stall counts as silence of clients and replicas.
  static constexpr std::chrono::milliseconds kStall{1000};

  // `ledger` and `spec` outlive the core.
  Core(Ledger& ledger, const job::JobSpec& spec, uint64_t seed);

  // Continues the job from the ledger. Call it once, first, and Commit after it.
  Status Load(Time now, WallTime wall_now);

  // Sets the core's time. Call it before each batch of calls and events.
  void Advance(Time now, WallTime wall_now);

  // The calls of clients.
  MasterApi& master_api() { return master_api_; }
  CompatApi& compat_api() { return compat_api_; }

  // For reading. Only the core and its APIs change these.
  const Dispatcher& dispatcher() const { return dispatcher_; }
  const ParameterKeeper& parameters() const { return parameters_; }
  const ModelJob& model() const { return model_; }
  const ReplicaKeeper& keeper() const { return keeper_; }
  const Sessions& sessions() const { return sessions_; }
  const ProgressLog& progress() const { return progress_; }
  Time now() const { return now_; }
  double started_at() const { return started_at_; }  // seconds since 1970
  double run_seconds() const { return run_time_.Seconds(real_now_); }
  int64_t master_starts() const { return master_starts_; }
  // When this process of the master saw the newest checkpoint completed, in seconds since 1970.
  const std::optional<double>& checkpoint_at() const { return checkpoint_at_; }

  // Calls `send` when everything decided so far is durable, after all earlier answers.
  void SendAfterCommit(std::function<void()> send) { outbox_.Add(std::move(send)); }
  // How many durable answers Commit has not sent, because it sends a limited number.
  size_t unsent_answers() const { return outbox_.releasable(); }
  void SendAnswers() { outbox_.Release(outbox_.releasable()); }
  // Drops all answers, as a crash would.
  void DropAnswers() { outbox_.Clear(); }

  // Registers a dataset, with the job's defaults for values that are 0. If the name is registered,
  // returns the dataset in force. For errors see Dispatcher::Register, CheckLeasesShards and
  // ModelJob::CheckRegistration.
  Result<const Dataset*> Register(DatasetSpec spec);
  // A call with the same `request_id` as an earlier one does nothing and returns the same result;
  // 0: the call has no id. Reset and Restore return the new generation of the dataset.
  Result<uint32_t> Reset(const std::string& name, uint64_t request_id = 0);
  Result<uint32_t> Restore(const std::string& content, uint64_t request_id = 0);
  // Deletes a barrier or event; without a name: all of them.
  void DeleteSync(const std::optional<std::string>& name, uint64_t request_id);

  // Events of the backend. `last_lines`: of the output of a replica that exited. They are shown if
  // the exit makes the job fail.
  void OnReplicaEvent(const job::ReplicaEvent& event, std::vector<std::string> last_lines);
  // Results and observations of the controller of parameter servers. `number` is that of the
  // command.
  void OnProbed(PsCommandId number, const Result<ProbeReply>& reply);
  void OnRestored(PsCommandId number, const Status& status);
  void OnSaved(PsCommandId number, const Status& status);
  void OnServerAlive(int index, PsIncarnation incarnation);
  void OnServerState(const job::ServerView& view);
  // Saves the parameters as soon as possible, unless they are durable by then.
  void RequestSave() { parameters_.WantSave(); }
  // A piece of a replica's output.
  void OnLog(const std::string& replica, std::string_view text);
  // The program called finish(): its training is over, whatever data is left.
  void OnFinish(ReplicaRef replica);
  // The program called fail(): the job fails with its message, and nothing is relaunched. Does
  // nothing if the job is ending or has ended.
  void OnFail(ReplicaRef replica, std::string_view message);
  void OnMetrics(int64_t step, const std::map<std::string, double>& metrics);

  // FailedPrecondition: the job is ending or has ended.
  Status Scale(int num_workers);
  // With --attach_workers: so many processes wait to become workers. Adds workers for those for
  // whom none will be launched. `was_launched` returns whether the backend knows a worker.
  // FailedPrecondition: no work is left for another worker.
  Status WantWorkers(size_t waiting, const std::function<bool(const std::string&)>& was_launched);
  // Ends the job as stopped by its user.
  void Stop(const std::string& reason);

  // Handles deadlines, silent clients, relaunches and the end of the job.
  void Tick();

  // Makes everything decided so far durable, then sends at most so many answers; the outbox keeps
  // the others. After an error with may_commit_again, nothing is lost: call Commit again. After any
  // other error the core must not be used any more.
  Status Commit(size_t most_answers = std::numeric_limits<size_t>::max());
  bool may_commit_again() const { return ledger_.is_full(); }
  // Whether the last Commit had something to write.
  bool last_commit_wrote() const { return last_commit_wrote_; }
  // Pauses the core, with a reason for users: no call is answered, and time stands still. Empty:
  // the core goes on.
  void set_paused(std::string why);
  bool paused() const { return !paused_.empty(); }
  std::vector<Command> TakeCommands() { return keeper_.TakeCommands(); }
  std::vector<ServerCommand> TakeServerCommands() { return parameters_.TakeCommands(); }

  job::JobState state() const { return state_; }
  // Rises with each change that status.json has to show.
  uint64_t view_number() const { return view_number_; }
  job::JobView View() const;
  // The process id of the master, shown to users.
  void set_process_id(int64_t process_id) { process_id_ = process_id; }
  // Where the master serves HTTP, "127.0.0.1:8080", shown to users.
  void set_http_address(std::string address) { http_address_ = std::move(address); }
  // Identifies this boot of the machine, so that the run time of the job is right after a restart
  // of the master. Call it before Load.
  void set_boot(std::string boot) { boot_ = std::move(boot); }
  Result<std::string> LedgerJson();
  // The curves of the job: docs/telemetry.md.
  telemetry::Curves Telemetry(const telemetry::Query& query) const {
    return recorder_.store().Read(query);
  }
  // See Recorder::set_process_use.
  void set_process_use(std::function<std::optional<ProcessUse>()> read) {
    recorder_.set_process_use(std::move(read));
  }
  // Identifies the ledger in calls and at parameter servers.
  LedgerId ledger_id() const { return ledger_id_; }

 private:
  void SetState(job::JobState state);
  void CloseReplica(ReplicaRef replica);
  void OnExited(const job::ReplicaEvent& event, std::vector<std::string> last_lines);
  // Replaces replicas that are silent and whose nodes the cluster has lost contact with.
  void LoseReplicasOfLostNodes();
  // The host of a running replica. On one machine, each replica has its own loopback address.
  std::string HostOf(const job::ReplicaEvent& event) const;
  // The id of the replica that runs in the slot of each parameter server. -1: none runs.
  std::vector<int64_t> RunningServers() const;
  // Stops all replicas. The job's state becomes `outcome` when they have exited.
  void End(job::JobState outcome, std::string reason, std::vector<std::string> last_lines);
  // Call it when all replicas that train have ended.
  void EndTraining();
  // Ends or replaces replicas that run but do no work: docs/states/replica.md.
  void EndTroubled();
  // The job continues by `train --resume`: earlier ends and failures do not count.
  void Resume();
  // Why the program may end although data is left; empty: it may not.
  std::string DeclaredEnd() const;
  // Fails the job if more shards are quarantined than --max_bad_shards allows.
  void CheckBadShards();
  void DriveEnd();
  // Work is left that no dataset counts as not trained.
  bool IsWorkLeft() const { return model_.enabled() ? !model_.done() : dispatcher_.AnythingLeft(); }
  // All data is done; in a job with a model, all work.
  bool AllDone() const { return model_.enabled() ? model_.done() : dispatcher_.AllFinished(); }
  bool EvaluatorIsThrough() const;
  // The evaluator has announced a wait that exceeds --evaluator_grace_secs.
  bool EvaluatorComesTooLate() const;
  bool ParametersAreSettled();
  void ShowEvaluation();
  void SaveJob();
  std::string OutcomeJson() const;
  Status LoadJob(const std::map<std::string, std::string>& meta);
  void LoadOutcome(const std::string& saved);
  void SaveCounters();

  Ledger& ledger_;
  const job::JobSpec& spec_;
  Time now_;       // loop time
  Time real_now_;  // the caller's clock at the last Advance
  WallTime wall_now_;
  Outbox outbox_;
  ProgressLog progress_;
  Sessions sessions_;
  Dispatcher dispatcher_;
  SyncPrimitives sync_;
  StalenessTracker staleness_;
  Rendezvous rendezvous_;
  RecentCalls recent_calls_;
  ReplicaKeeper keeper_;
  ParameterKeeper parameters_;
  ModelJob model_;
  Recorder recorder_;
  const Context context_;
  MasterApi master_api_;
  CompatApi compat_api_;

  job::JobState state_ = job::JobState::kStarting;
  job::JobState outcome_ = job::JobState::kSucceeded;  // the final state, once ending_
  bool ending_ = false;                                // replicas are being stopped
  std::string reason_;
  std::string success_rule_;
  std::string declared_end_;  // how the program declared its end; empty: it did not
  std::string paused_;
  LedgerId ledger_id_;
  int64_t resume_taken_ = 0;
  std::vector<std::string> last_lines_;
  std::vector<std::string> remarks_;
  double started_at_ = 0;
  double ended_at_ = 0;
  std::string boot_;
  RunTime run_time_;
  int64_t master_starts_ = 0;
  int64_t process_id_ = 0;
  std::string http_address_;
  std::optional<double> checkpoint_at_;
  Time finishing_since_;
  Time evaluator_waits_until_;  // as announced in its log
  uint64_t view_number_ = 0;
  uint64_t shown_troubles_ = 0;
  uint64_t shown_evaluation_ = 0;
  uint64_t recorded_evaluation_ = 0;
  bool tick_due_ = false;
  bool last_commit_wrote_ = false;
  const uint64_t seed_;
  std::string saved_counters_;
};

}  // namespace edl::master
