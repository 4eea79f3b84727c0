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

// Commands for the backend. ReplicaLauncher carries them out after the commit that decided them.
struct LaunchCommand {
  std::string name;
  ReplicaRef replica;
  int index = 0;
  int64_t memory_bytes = 0;
  int num_workers = 0;
  bool relaunched = false;
  int64_t ps_lanes = 0;  // only for a parameter server of ours
};
struct StopCommand {
  std::string name;
  std::chrono::milliseconds grace{0};
};
struct AcknowledgeCommand {
  std::string name;
};
using Command = std::variant<LaunchCommand, StopCommand, AcknowledgeCommand>;

// What the rest of the master knows about a replica that has just exited.
struct EndOfLife {
  bool progressed = false;  // a worker reported a batch; a ps: the job had a new one meanwhile
  bool fetch_unanswered = false;  // data was left, and its last fetch had no answer yet
  int64_t version = 0;            // of the job, at the exit
  std::vector<std::string> last_lines;
};

// Keeps the desired replicas running: launches them, decides by the cause of an exit whether and
// when the slot is refilled, and reports when the job has failed. docs/states/replica.md.
//
// With external replicas it has no slots: it only knows which replicas have open sessions.
//
// Confined: call it on the master's loop.
class ReplicaKeeper {
 public:
  // After so many replicas of a slot in a row without progress, over at least this time, every exit
  // counts as a failure, whatever its cause.
  static constexpr int kIdleLives = 5;
  static constexpr Duration kIdleAtLeast = std::chrono::seconds(60);
  // The largest id of a role: WORKER_ID and names have no room for more digits.
  static constexpr int64_t kMostLaunches = 1'000'000;
  // A ps or an evaluator that ran for this long made progress.
  static constexpr Duration kReadyAfter = std::chrono::seconds(30);
  static constexpr std::chrono::milliseconds kStopGrace{2000};
  static constexpr int kMostWorkers = 100'000;  // as --num_workers
  // A stop is repeated until the replica has exited: after 5 s, 10 s, 20 s, 40 s, then each minute.
  static constexpr BackoffLimits kStopRetry{.first = std::chrono::seconds(5),
                                            .longest = std::chrono::seconds(60)};
  // So many exited replicas are kept besides the newest of each slot.
  static constexpr size_t kKeptEnded = 100;
  // A replica without a session is lost this long after contact with its node was lost.
  static constexpr Duration kNodeLostFor = std::chrono::seconds(30);
  // A parameter server that answered within this time is alive, even if its node seems lost.
  static constexpr Duration kServerSilence = std::chrono::seconds(10);

  ReplicaKeeper(Ledger& ledger, const job::JobSpec& spec) : ledger_(ledger), spec_(spec) {}

  // Reads replicas and slots from the ledger. Nothing is decided before OnSynced.
  Status Load(Time now);

  // The backend has reported all its replicas. Replicas of the ledger that it does not know are
  // launched if they were never started, and count as killed otherwise.
  void OnSynced(Time now);
  void OnPending(const std::string& name, const std::string& reason, Time now);
  // `host`: the replica's address; `version`: of the job.
  void OnRunning(const std::string& name, int64_t process_id, const std::string& host,
                 int64_t version, Time now);
  // REQUIRES: the caller has reclaimed the replica's leases and locks.
  void OnExit(const std::string& name, const job::ExitCause& cause, EndOfLife end, Time now);

  // A process of the replica joined at our API. With external replicas, it runs from now on.
  void OnJoined(ReplicaRef replica);
  // With external replicas: the last session of the replica has ended.
  void OnLeft(ReplicaRef replica);
  // The replica's session expired. The next join undoes this.
  void OnSilent(ReplicaRef replica);
  // The parameter server of this slot answered the master.
  void OnServerHeard(int index, Time now);
  // Contact with the replica's node was lost (`lost`) or restored.
  void OnNode(const std::string& name, bool lost, Time now);
  // Returns running replicas that are lost: contact with their node was lost, and they are silent
  // too. `has_session` returns whether the replica has an open session.
  std::vector<std::string> LostWithTheirNodes(const std::function<bool(ReplicaRef)>& has_session,
                                              Time now) const;

  // A ps requested data: it runs the workers' program, and was refused.
  void NotePsAskedForData(ReplicaRef replica);
  bool ps_asked_for_data() const { return ps_asked_for_data_; }

  // Carries out relaunches and repeated stops that are due.
  void Tick(Time now);

  // Stops a running replica that does not do its work, so that its slot is refilled. Its exit then
  // counts as killed, for the reason `why`. May be called again until it has exited.
  void Replace(ReplicaRef replica, const std::string& why);
  // The number of lanes with which parameter servers of ours are launched.
  void set_ps_lanes(int64_t lanes) { ps_lanes_ = lanes; }

  // InvalidArgument: not possible for this job.
  Status Scale(int num_workers, Time now);
  // One more than the highest index of a wanted worker.
  int WantedWorkers() const;
  // The number of workers that will be launched, now or after a delay. `was_launched` returns
  // whether the backend knows the worker of this name.
  size_t WorkersToLaunch(const std::function<bool(const std::string&)>& was_launched) const;
  // Launches a worker in a slot that had succeeded, or a chief if the job has no workers.
  void LaunchForLeftover(Time now);
  // Withdraws workers that the backend has no room for: there is no data left for them.
  void WithdrawPending(Time now);
  // Continues a job that had ended. Earlier failures do not count any more. With `data_left`, slots
  // of workers that had succeeded are filled again. `num_workers` of 0: as many as before.
  void Resume(int num_workers, bool data_left);
  // What happens to the slot of a replica that is ended.
  enum class AfterEnd { kRefillSlot, kSlotSucceeded };
  // Stops a running replica that does not do its work. Returns false if it does not run or is being
  // stopped already.
  bool EndTroubled(ReplicaRef replica, AfterEnd after);
  TroubledReplicas& troubled() { return troubled_; }
  const TroubledReplicas& troubled() const { return troubled_; }
  // Stops what runs under this name, and repeats that until it has exited.
  void StopUnwanted(const std::string& name, Time now) { StopName(name, now); }
  // Stops all replicas and launches no more.
  void StopAll(Time now);

  // True: chief and all workers have ended for good.
  bool TrainingEnded() const;
  // True: a replica of this job runs. Includes replicas that are not in the ledger, or have exited
  // according to it.
  bool AnyRunning() const;
  bool AnyRunning(job::Role role) const;
  bool ChiefSucceeded() const;
  // True: the chief runs or will run again.
  bool ChiefExpected() const;
  bool synced() const { return synced_; }

  struct Failure {
    std::string reason;
    std::vector<std::string> last_lines;
  };
  // Why the job cannot continue; nullopt while it can.
  const std::optional<Failure>& failure() const { return failure_; }

  struct Replica {
    ReplicaRow row;
    Time running_since;
    int64_t first_version = INT64_MAX;  // of the job, when it began to run
    std::string host;                   // while it runs, and after
    bool reported = false;              // the backend reported it since this master started
    bool from_ledger = false;           // launched by an earlier process of the master
    bool stop_asked = false;            // by this process of the master
    std::string replaced_for;           // why it is being stopped and its slot refilled; empty: no
    bool silent = false;                // its session expired, and it did not join again
    Time heard_at;                      // a parameter server's last answer
    std::optional<Time> node_lost_at;   // since when there is no contact with its node
  };
  const std::map<std::string, Replica>& replicas() const { return replicas_; }
  const Replica* Find(const std::string& name) const;
  const Replica* Find(ReplicaRef replica) const;
  std::vector<ReplicaRef> Running(job::Role role) const;
  // The number of replicas that were launched because their predecessor in the slot had exited. A
  // slot that was scaled down and up again does not count.
  int64_t relaunches() const { return relaunches_; }
  // The number of exited replicas that are not in replicas() any more.
  int64_t forgotten() const { return forgotten_; }
  // True: the replica was launched for this job and has exited. Includes forgotten replicas.
  bool HasEnded(ReplicaRef replica) const;
  // True: a replica runs at this address.
  bool IsHost(const std::string& host) const { return hosts_.contains(host); }
  // Rises whenever a replica starts or stops running.
  uint64_t membership_number() const { return membership_; }

  std::vector<Command> TakeCommands();

 private:
  struct Slot {
    SlotRow row;
    std::string current;              // replica name; empty: none yet
    std::optional<Time> relaunch_at;  // of a slot that is to be refilled
    // When its replicas without progress began, and the job's version then. None: not since this
    // master started.
    std::optional<Time> idle_since;
    int64_t idle_version = 0;
    bool given_up = false;
  };
  using SlotKey = std::pair<job::Role, int>;

  void MakeSlots();
  // The slot, made with the memory of its role if it is new.
  Slot& MakeSlot(job::Role role, int index);
  void Stop(Replica& replica, Time now);
  // Has the backend stop what runs under this name, until the backend reports its exit.
  void StopName(const std::string& name, Time now);
  void RetryStops(Time now);
  // Removes the oldest exited replicas from memory and from the ledger. Their counts stay.
  void Prune();
  void SaveCounts();
  void Launch(Slot& slot, bool relaunched);
  void Refill(Slot& slot, Time at);
  // Counts an exit as a failure of the slot.
  void CountFailure(Slot& slot, const Replica& replica, const std::string& why, EndOfLife end,
                    Time now);
  void CountLife(Slot& slot, bool progressed, int64_t version, Time now);
  // True: too many replicas of the slot in a row made no progress.
  bool IsStuck(const Slot& slot, Time now) const;
  // True: the job can continue without this slot, because other workers make progress.
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
  std::map<std::string, PendingStop> stops_;  // by name: sent, and no exit was reported yet
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
  bool logged_wait_for_ps_ = false;
  bool synced_ = false;
  bool stopping_ = false;
};

}  // namespace edl::master
