#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/status.h"
#include "job/job_spec.h"
#include "job/job_view.h"
#include "job/replica.h"
#include "master/ledger/ledger.h"
#include "master/replicas/troubled_replicas.h"
#include "master/types.h"

namespace edl::master {

// What the keeper asks of the backend, carried out after the commit that decided it.
struct LaunchCommand {
  std::string name;
  ReplicaRef replica;
  int index = 0;
  int64_t memory_bytes = 0;
  int num_workers = 0;
  bool relaunched = false;
  int64_t ps_lanes = 0;  // of a parameter server of ours
};
struct StopCommand {
  std::string name;
  std::chrono::milliseconds grace{0};
};
struct AcknowledgeCommand {
  std::string name;
};
using Command = std::variant<LaunchCommand, StopCommand, AcknowledgeCommand>;

// What the rest of the master knows about a replica that just ended.
struct EndOfLife {
  bool progressed = false;        // reported a batch in this life; a ps: served one that was new
  bool fetch_unanswered = false;  // left, with data left, before its last fetch was answered
  int64_t version = 0;            // of the job, at the end
  std::vector<std::string> last_lines;
};

// Keeps the wanted replicas running: launches them, decides by the cause of an exit whether and
// when the slot is refilled, and says when the job has failed. docs/states/replica.md.
//
// Confined: call it on the master's loop.
class ReplicaKeeper {
 public:
  // So many lives in a row without progress, over at least this time: any cause counts then.
  static constexpr int kIdleLives = 5;
  static constexpr Duration kIdleAtLeast = std::chrono::seconds(60);
  // Ids of a role; WORKER_ID and names have room for no more.
  static constexpr int64_t kMostLaunches = 1'000'000;
  // A ps or an evaluator that ran for so long made progress.
  static constexpr Duration kReadyAfter = std::chrono::seconds(30);
  static constexpr std::chrono::milliseconds kStopGrace{2000};
  static constexpr int kMostWorkers = 100'000;  // as --num_workers
  // A stop is repeated until the replica is gone: after 5 s, 10 s, 20 s, 40 s, then each minute.
  static constexpr BackoffLimits kStopRetry{.first = std::chrono::seconds(5),
                                            .longest = std::chrono::seconds(60)};
  // How many ended replicas are kept beside the newest of each slot.
  static constexpr size_t kKeptEnded = 100;
  // A replica that sends nothing to the master by design is lost with its node after so long.
  static constexpr Duration kNodeLostFor = std::chrono::seconds(30);
  // A parameter server that answered within this time is alive, whatever its node's state is.
  static constexpr Duration kServerSilence = std::chrono::seconds(10);

  ReplicaKeeper(Ledger& ledger, const job::JobSpec& spec) : ledger_(ledger), spec_(spec) {}

  // Reads replicas and slots back. Nothing is decided before OnSynced.
  Status Load(Time now);

  // The backend told all it has: launches what was never started, takes the rest for killed.
  void OnSynced(Time now);
  void OnPending(const std::string& name, const std::string& reason, Time now);
  // `host`: its address; `version`: of the job.
  void OnRunning(const std::string& name, int64_t process_id, const std::string& host,
                 int64_t version, Time now);
  // The replica's part in the master (leases, locks) has been taken back by the caller.
  void OnExit(const std::string& name, const job::ExitCause& cause, EndOfLife end, Time now);

  // A process of it spoke at our API.
  void OnJoined(ReplicaRef replica);
  // Its session was given up because nothing was heard of it. The next join undoes this.
  void OnSilent(ReplicaRef replica);
  // The parameter server of this slot answered the master.
  void OnServerHeard(int index, Time now);
  // Whether contact with the replica's node was lost (`lost`) or is back.
  void OnNode(const std::string& name, bool lost, Time now);
  // Running replicas that are lost: there is no contact with their node, and they are silent
  // themselves. `has_session`: whether the replica has an open session.
  std::vector<std::string> LostWithTheirNodes(const std::function<bool(ReplicaRef)>& has_session,
                                              Time now) const;

  // A ps asked for data: it runs the workers' program, and got none.
  void NotePsAskedForData(ReplicaRef replica);
  bool ps_asked_for_data() const { return ps_asked_for_data_; }

  // Relaunches and repeated stops whose time has come.
  void Tick(Time now);

  // Ends a replica that runs and does not do its work, so that its slot is refilled: its end then
  // counts as being killed, for `why`. May be asked again until it is gone.
  void Replace(ReplicaRef replica, const std::string& why);
  // How many lanes parameter servers of ours are launched with.
  void set_ps_lanes(int64_t lanes) { ps_lanes_ = lanes; }

  // InvalidArgument: not possible for this job.
  Status Scale(int num_workers, Time now);
  // Puts a fresh worker (or chief, for want of workers) into a slot that had succeeded.
  void LaunchForLeftover(Time now);
  // Does without the workers that the backend finds no room for: there is nothing left for them.
  void WithdrawPending(Time now);
  // A job that had ended goes on: what failed before does not count any more. With `data_left`
  // workers that had succeeded train on. `num_workers` of 0: as many as before.
  void Resume(int num_workers, bool data_left);
  // Ends a replica that runs and does not work. The slot is refilled if `replace`, else its part is
  // done. False: it does not run, or is being ended already.
  bool EndTroubled(ReplicaRef replica, bool replace);
  TroubledReplicas& troubled() { return troubled_; }
  const TroubledReplicas& troubled() const { return troubled_; }
  // What runs under this name is not wanted: it is told to end until it is gone.
  void StopUnwanted(const std::string& name, Time now) { StopName(name, now); }
  // Ends all that runs and launches nothing any more.
  void StopAll(Time now);

  // Chief and workers are all through.
  bool TrainingEnded() const;
  // Whether anything of this job runs, replicas that are unknown or have ended by our record
  // included.
  bool AnyRunning() const;
  bool AnyRunning(job::Role role) const;
  bool ChiefSucceeded() const;
  // The chief runs or will run again.
  bool ChiefExpected() const;
  bool synced() const { return synced_; }

  struct Failure {
    std::string reason;
    std::vector<std::string> last_lines;
  };
  // Why the job cannot go on; nullopt while it can.
  const std::optional<Failure>& failure() const { return failure_; }

  struct Replica {
    ReplicaRow row;
    Time running_since;
    int64_t first_version = INT64_MAX;  // of the job, when it began to run
    std::string host;                   // while it runs, and after
    bool told = false;                  // by the backend, since this master started
    bool from_ledger = false;           // launched in an earlier master life
    bool stop_asked = false;            // in this master life: its end is our doing
    std::string replaced_for;           // it is being ended so that its slot is refilled
    bool silent = false;                // its session was given up, and it did not join again
    Time heard_at;                      // a parameter server's last answer
    std::optional<Time> node_lost_at;   // since when there is no contact with its node
  };
  const std::map<std::string, Replica>& replicas() const { return replicas_; }
  const Replica* Find(const std::string& name) const;
  const Replica* Find(ReplicaRef replica) const;
  std::vector<ReplicaRef> Running(job::Role role) const;
  // Replicas that were launched because the one before them in the slot had ended. A slot that
  // somebody scaled down and up again does not count.
  int64_t relaunches() const { return relaunches_; }
  // Ended replicas that are not in replicas() any more.
  int64_t forgotten() const { return forgotten_; }
  // Whether the replica is one of ours that has ended, forgotten ones included.
  bool HasEnded(ReplicaRef replica) const;
  // Whether a replica runs there.
  bool IsHost(const std::string& host) const { return hosts_.contains(host); }
  // Rises whenever a replica starts or stops running.
  uint64_t membership_number() const { return membership_; }

  std::vector<Command> TakeCommands();

 private:
  struct Slot {
    SlotRow row;
    std::string current;              // replica name; empty: none yet
    std::optional<Time> relaunch_at;  // of a slot that is to be refilled
    // When its lives without progress began, and the job's version then; none in this master life.
    std::optional<Time> idle_since;
    int64_t idle_version = 0;
    bool given_up = false;
  };
  using SlotKey = std::pair<job::Role, int>;

  void MakeSlots();
  // The slot, made with the memory of its role if it is new.
  Slot& MakeSlot(job::Role role, int index);
  void Stop(Replica& replica, Time now);
  // Asks the backend to end what runs under this name, until its exit is told.
  void StopName(const std::string& name, Time now);
  void RetryStops(Time now);
  // Forgets the oldest ended replicas, in memory and in the ledger. Their counts stay.
  void Prune();
  void SaveCounts();
  void Launch(Slot& slot, bool relaunched);
  void Refill(Slot& slot, Time at);
  // An exit that counts against the slot's line.
  void CountFailure(Slot& slot, const Replica& replica, const std::string& why, EndOfLife end,
                    Time now);
  void CountLife(Slot& slot, bool progressed, int64_t version, Time now);
  // Whether the slot's lives without progress are too many to go on.
  bool IsStuck(const Slot& slot, Time now) const;
  // The slot's own fault or not, the job goes on without it while others train.
  bool CanDoWithout(const Slot& slot, int64_t version) const;
  void BringBackChief(Time now);
  int FailuresAllowed(const Slot& slot) const;
  // --launch_worker_after_ps_running: whether the slot's first launch waits until every ps runs.
  bool WaitsForPs(const Slot& slot) const;
  bool FailsTheJob(const Slot& slot) const;
  void SetState(Replica& replica, job::ReplicaState state, const std::string& reason);
  Slot& SlotOf(const Replica& replica);
  static bool IsRelaunchAfter(const Replica& before) {
    return before.row.state != job::ReplicaState::kStopped;
  }

  Ledger& ledger_;            // outlives this
  const job::JobSpec& spec_;  // outlives this
  std::map<SlotKey, Slot> slots_;
  std::map<std::string, Replica> replicas_;
  std::map<std::string, std::string> hosts_;  // of running replicas, to their names
  std::map<job::Role, int64_t> next_id_;
  struct PendingStop {
    Time again_at;
    Duration wait;
  };
  std::map<std::string, PendingStop> stops_;  // by name: asked for, and no exit was told yet
  std::set<std::string> without_node_;        // names of replicas whose node_lost_at is set
  std::vector<Command> commands_;
  std::optional<Failure> failure_;
  TroubledReplicas troubled_;
  // Nothing changed since the last Tick, and no relaunch is due before that time.
  std::optional<Time> quiet_until_;
  int64_t relaunches_ = 0;
  int64_t ps_lanes_ = 0;
  int64_t forgotten_ = 0;
  Time last_tick_;
  std::deque<std::string> ended_;  // names, oldest first
  uint64_t membership_ = 1;
  bool ps_asked_for_data_ = false;
  bool told_of_wait_for_ps_ = false;  // in the log
  bool synced_ = false;
  bool stopping_ = false;
};

}  // namespace edl::master
