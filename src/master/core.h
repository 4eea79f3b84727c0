#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "job/job_spec.h"
#include "job/job_view.h"
#include "job/replica.h"
#include "master/api/compat_api.h"
#include "master/api/master_api.h"
#include "master/context.h"
#include "master/ledger/ledger.h"
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

namespace edl::master {

// All decisions of a master, without threads, sockets or processes: calls and events go in, and
// after each Commit the answers go out and commands are there for the backend. Time is handed in,
// so a simulation can drive it through years.
//
// Confined: call it on the master's loop.
class Core {
 public:
  // A stall of the loop longer than this does not count as the others' silence.
  static constexpr std::chrono::milliseconds kStall{1000};

  // `ledger` and `spec` outlive the core.
  Core(Ledger& ledger, const job::JobSpec& spec, uint64_t seed);

  // Takes up the job where the ledger left it. To be followed by Commit.
  Status Load(Time now, WallTime wall_now);

  // Moves the core's time; to be called before each batch of calls and events.
  void Advance(Time now, WallTime wall_now);

  // What clients call.
  MasterApi& master_api() { return master_api_; }
  CompatApi& compat_api() { return compat_api_; }

  // To read. Only the core and its APIs change these.
  const Dispatcher& dispatcher() const { return dispatcher_; }
  const ParameterKeeper& parameters() const { return parameters_; }
  const ReplicaKeeper& keeper() const { return keeper_; }
  const Sessions& sessions() const { return sessions_; }
  Time now() const { return now_; }

  // Calls `send` once everything decided so far is durable, after the answers that were added
  // before.
  void SendAfterCommit(std::function<void()> send) { outbox_.Add(std::move(send)); }
  // Answers that are durable and were not sent, because Commit sends a limited number.
  size_t unsent_answers() const { return outbox_.releasable(); }
  void SendAnswers() { outbox_.Release(outbox_.releasable()); }
  // Drops all answers, as a crash would.
  void DropAnswers() { outbox_.Clear(); }

  // The dataset that a caller wants, with the job's defaults filled in.
  Result<const Dataset*> Register(DatasetSpec spec);
  // These three are carried out once for each `request_id` other than 0. The first two return the
  // dataset's generation then.
  Result<uint32_t> Reset(const std::string& name, uint64_t request_id = 0);
  Result<uint32_t> Restore(const std::string& content, uint64_t request_id = 0);
  // Without a name: all of them.
  void DeleteSync(const std::optional<std::string>& name, uint64_t request_id);

  // From the backend. `last_lines` of an exit go into the failure message if it comes to that.
  void OnReplicaEvent(const job::ReplicaEvent& event, std::vector<std::string> last_lines);
  // From the controller of parameter servers: what became of the command with that number, who
  // answers at a server's address, and how the server is.
  void OnProbed(uint64_t number, const Result<ProbeReply>& reply);
  void OnRestored(uint64_t number, const Status& status);
  void OnSaved(uint64_t number, const Status& status);
  void OnServerAlive(int index, uint64_t incarnation);
  void OnServerState(const job::ServerView& view);
  // Saves the parameters as soon as possible, where they are not durable by then.
  void RequestSave() { parameters_.WantSave(); }
  // A piece of a replica's output.
  void OnLog(const std::string& replica, std::string_view text);
  // The program says that its training ends here, whatever data is left.
  void OnFinish(ReplicaRef replica);
  void OnMetrics(int64_t step, const std::map<std::string, double>& metrics);

  Status Scale(int num_workers);
  // Ends the job as stopped by its user.
  void Stop(const std::string& reason);

  // Deadlines, silence, relaunches, the end of the job.
  void Tick();

  // Makes everything decided so far durable, then lets at most so many answers go; the outbox keeps
  // the others. After a failure of which may_commit_again is true, nothing is lost and Commit is to
  // be called again.
  Status Commit(size_t most_answers = std::numeric_limits<size_t>::max());
  bool may_commit_again() const { return ledger_.is_full(); }
  // Why nothing is answered for now; empty: it is. Meanwhile time stands still.
  void set_paused(std::string why);
  bool paused() const { return !paused_.empty(); }
  std::vector<Command> TakeCommands() { return keeper_.TakeCommands(); }
  std::vector<ServerCommand> TakeServerCommands() { return parameters_.TakeCommands(); }

  job::JobState state() const { return state_; }
  // Rises with each change that status.json should show.
  uint64_t view_number() const { return view_number_; }
  job::JobView View() const;
  // Whose state this is, for people.
  void set_process_id(int64_t process_id) { process_id_ = process_id; }
  // Names this boot of the machine, so that the time that a job has run is right after a restart of
  // the master. Call it before Load.
  void set_boot(std::string boot) { boot_ = std::move(boot); }
  Result<std::string> LedgerJson();
  // Names the ledger in calls and at parameter servers.
  uint64_t ledger_number() const { return ledger_number_; }

 private:
  void SetState(job::JobState state);
  void CloseReplica(ReplicaRef replica);
  void OnExited(const job::ReplicaEvent& event, std::vector<std::string> last_lines);
  // A replica is lost when the cluster lost contact with its node and it is silent itself.
  void LoseReplicasOfLostNodes();
  // The host of a running replica. On this machine each has its own loopback address.
  std::string HostOf(const job::ReplicaEvent& event) const;
  // The replica that runs in each parameter server's slot. -1: none.
  std::vector<int64_t> RunningServers() const;
  // Starts ending the job with `outcome`.
  void End(job::JobState outcome, std::string reason, std::vector<std::string> last_lines);
  void EndTraining();
  // Ends or replaces replicas that run and do not work, by the rules of docs/states/replica.md.
  void EndTroubled();
  // The job goes on by `train --resume`: what ended and what failed before counts no more.
  void Resume();
  // Why the program may end with data left; empty: it may not.
  std::string DeclaredEnd() const;
  void CheckBadShards();
  void DriveEnd();
  bool EvaluatorIsThrough() const;
  // Whether it said that it waits beyond the time that it gets at the end.
  bool EvaluatorComesTooLate() const;
  bool ParametersAreSettled();
  void SaveJob();
  std::string OutcomeJson() const;
  Status LoadJob(const std::map<std::string, std::string>& meta);
  void LoadOutcome(const std::string& saved);
  void SaveCounters();

  Ledger& ledger_;
  const job::JobSpec& spec_;
  Time now_;       // loop time
  Time real_now_;  // what the caller's clock said last
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
  const Context context_;
  MasterApi master_api_;
  CompatApi compat_api_;

  job::JobState state_ = job::JobState::kStarting;
  job::JobState outcome_ = job::JobState::kSucceeded;  // of an ending job
  bool ending_ = false;                                // replicas are being stopped
  std::string reason_;
  std::string success_rule_;
  std::string declared_end_;  // by the program; empty: it has not
  std::string paused_;
  uint64_t ledger_number_ = 0;
  int64_t resume_taken_ = 0;
  std::vector<std::string> last_lines_;
  std::vector<std::string> remarks_;
  double started_at_ = 0;
  double ended_at_ = 0;
  std::string boot_;
  RunTime run_time_;
  int64_t master_starts_ = 0;
  int64_t process_id_ = 0;
  Time finishing_since_;
  Time evaluator_waits_until_;  // by its own word
  uint64_t view_number_ = 0;
  uint64_t shown_troubles_ = 0;
  bool tick_due_ = false;
  const uint64_t seed_;
  std::string saved_counters_;
};

}  // namespace edl::master
