#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "checkpoint/shard_set.h"
#include "job/job_spec.h"
#include "job/job_view.h"
#include "master/ledger/ledger.h"
#include "master/shards/dispatcher.h"

namespace edl::master {

// What the keeper asks of the parameter servers, carried out after the commit that decided it by
// whoever can reach them. An answer names the number of what it answers.

// Ask a server who it is.
struct ProbeServer {
  uint64_t number = 0;
  int index = 0;
};
// Give servers their parameters, in place of whatever they have.
struct RestoreServers {
  struct Server {
    int index = 0;
    uint64_t incarnation = 0;
  };
  uint64_t number = 0;
  uint64_t ps_epoch = 0;
  std::vector<Server> servers;
  std::string checkpoint;  // its name; empty: they begin with nothing
  // The checkpoint is a path, of another job: it gives parameters, and no marks.
  bool of_another_job = false;
};
// Let all servers serve, and tell them what is over.
struct ServeAll {
  uint64_t ps_epoch = 0;
  std::vector<uint64_t> incarnations;  // of the servers, by index
  bool may_push = false;               // else a worker that opens a shard is kept waiting
  uint64_t floor = 0;                  // leases below it are over
  checkpoint::ShardSet covered;        // shards that no restore will ask for
  std::vector<bool> released;          // servers that may end: what they have is saved or unneeded
};
// Save the parameters of all servers.
struct SaveAll {
  uint64_t number = 0;
  std::string name;
  uint64_t ps_epoch = 0;
  std::vector<uint64_t> incarnations;
  int64_t version = 0;
  checkpoint::ShardSet covered;
  bool flush = false;  // close rounds that are open first: nobody will fill them
};
// Give up a save: what it has written is of no use. It is still answered.
struct CancelSave {
  uint64_t number = 0;
};
// Remove a checkpoint, or what there is of it.
struct DropCheckpoint {
  std::string name;
};
// Remove folders of saves that this ledger began and does not name: their master died, or their
// removal failed. What another ledger wrote stays.
struct CollectOrphans {
  uint64_t ledger = 0;
  std::vector<std::string> keep;
  int64_t below = 0;  // saves from this number on are not looked at
};
using ServerCommand = std::variant<ProbeServer, RestoreServers, ServeAll, SaveAll, CancelSave,
                                   DropCheckpoint, CollectOrphans>;

// What a server said of itself when it was asked who it is.
struct ProbeReply {
  uint64_t incarnation = 0;
  uint32_t lanes = 0;
};

// A parameter server that has not answered for too long.
struct SilentServer {
  int64_t replica = -1;
  std::string why;
};

// Keeps what the parameter servers have exactly as good as what the ledger says is done, whatever
// dies: takes checkpoints, restores a server that comes anew from the last one, and has trained
// again what that one lacks. docs/states/parameters.md.
//
// Confined: call it on the master's loop.
class ParameterKeeper {
 public:
  // A restore may use only this many of the newest checkpoints, however many are kept.
  static constexpr size_t kUsable = 2;
  static constexpr Duration kProbeInterval = std::chrono::milliseconds(100);
  static constexpr Duration kSaveAgain = std::chrono::seconds(2);  // after one that failed
  static constexpr int kMostFailedSaves = 5;  // in a row, of the one that the end waits for
  // A server that has never answered may take longer than one that has.
  static constexpr Duration kFirstAnswer = std::chrono::seconds(60);
  // Before that a missing answer is not worth showing.
  static constexpr Duration kShowSilence = std::chrono::seconds(3);
  static constexpr Duration kRestoreBackoff = std::chrono::seconds(5);  // at most
  // A restore that fails for a reason which neither a new server nor another checkpoint cures is
  // tried for so long.
  static constexpr Duration kRestoreTimeout = std::chrono::seconds(120);

  // All outlive it. It does nothing for a job whose parameters are kept elsewhere.
  ParameterKeeper(Ledger& ledger, Dispatcher& dispatcher, const job::JobSpec& spec)
      : ledger_(ledger), dispatcher_(dispatcher), spec_(spec) {}

  bool enabled() const { return spec_.own_ps; }
  // `saved` is what Flush wrote; empty: the ledger is new, and gets `new_ledger` as its number.
  Status Load(const std::string& saved, uint64_t new_ledger, Time now);

  // `running`: of each server's slot the replica id that runs there, or -1.
  void Tick(const std::vector<int64_t>& running, Time now);

  void OnProbed(uint64_t number, const Result<ProbeReply>& reply, Time now);
  // DataLoss: the checkpoint is damaged. NotFound: the master itself sees no such checkpoint.
  void OnRestored(uint64_t number, const Status& status, Time now);
  void OnSaved(uint64_t number, const Status& status, Time now);
  // What a server said of itself. Of one that is not known, all that counts is who it is.
  void OnState(const job::ServerView& state, Time now);
  // The server's process answers, though its lanes may be too busy to say how they are.
  void OnAlive(int index, uint64_t incarnation, Time now);

  std::vector<ServerCommand> TakeCommands() { return std::exchange(commands_, {}); }
  // Servers that are to be replaced because they do not answer.
  std::vector<SilentServer> TakeSilent() { return std::exchange(silent_, {}); }
  void Flush();

  // All that is done survives the loss of every server.
  bool IsDurable() const;
  // Nobody needs the servers any more.
  void Release();
  // Takes a checkpoint as soon as it can. Once a job's workers have ended, before it does.
  void WantSave() { save_wanted_ = true; }
  bool IsSaving() const { return saving_.has_value() || save_wanted_; }
  // Why the job cannot go on; nullopt while it can.
  const std::optional<std::string>& failure() const { return failure_; }

  uint64_t ledger_id() const { return ledger_id_; }
  uint64_t ps_epoch() const { return ps_epoch_; }
  // Lanes of each server. Constant for the life of the ledger, unless --resume changes --ps_lanes.
  int64_t lanes() const { return lanes_; }
  std::vector<job::ServerView> View(Time now) const;

  struct Checkpoint {
    std::string name;
    bool users = false;  // asked for by --checkpoint_steps
    int64_t version = 0;
    checkpoint::ShardSet covered;
  };
  const std::vector<Checkpoint>& checkpoints() const { return checkpoints_; }
  // Checkpoints that were found damaged: kept, named, and never used.
  struct BadCheckpoint {
    std::string name;
    std::string why;
  };
  const std::vector<BadCheckpoint>& bad_checkpoints() const { return bad_; }

 private:
  enum class Phase {
    kGathering,  // until every server has said who it is
    kRestoring,
    kServing,
  };
  // One life of a server, as far as it is known.
  struct Slot {
    int64_t replica = -1;       // that runs there
    uint64_t probe_number = 0;  // of the question that is open
    uint64_t incarnation = 0;   // that answered; 0: none yet
    Time probe_at;              // not before
    bool released = false;      // it leaves, and was saved since
    Time heard_at;              // its last answer; at first, when it began to run
    bool has_answered = false;
    Time replace_at;      // not before: it was asked to be replaced
    std::string trouble;  // why its last answer is no good
    job::ServerView state;
  };
  // Whose parameters the ledger relies on.
  struct Served {
    int64_t replica = -1;
    uint64_t incarnation = 0;
  };
  struct Saving {
    uint64_t number = 0;
    uint64_t ps_epoch = 0;
    Checkpoint checkpoint;
    std::vector<size_t> leaving;  // servers whose pushes had ended before it began
  };

  bool can_save() const { return spec_.recovery_checkpoint_secs > 0; }
  Status LoadSaved(const std::string& saved);
  void Observe(const std::vector<int64_t>& running, Time now);
  void Heard(Slot& slot, Time now);
  void CheckSilence(Time now);
  Duration SilenceAllowed(const Slot& slot) const;
  std::string ReasonOf(size_t index, Time now) const;
  void OnRestoreFailed(const Status& status, Time now);
  void MarkNewestBad(const std::string& why);
  void CollectRest();
  void Probe(Time now);
  void Decide(Time now);
  void Serve();
  bool SaveIsDue(Time now) const;
  bool IsStepDue() const;
  void BeginSave(Time now);
  void Prune();
  checkpoint::ShardSet DoneShards() const;
  std::vector<uint64_t> Incarnations() const;
  void UpdateRule();

  Ledger& ledger_;
  Dispatcher& dispatcher_;
  const job::JobSpec& spec_;
  uint64_t ledger_id_ = 0;
  uint64_t ps_epoch_ = 0;
  int64_t lanes_ = 0;
  int64_t next_save_ = 1;
  std::vector<Served> served_;
  std::vector<Checkpoint> checkpoints_;  // oldest first
  size_t usable_ = 0;                    // of the newest: what these lack, servers have marks of
  std::vector<BadCheckpoint> bad_;       // oldest first
  bool dirty_ = false;

  Phase phase_ = Phase::kGathering;
  std::vector<Slot> slots_;
  uint64_t last_number_ = 0;
  uint64_t restore_number_ = 0;
  std::string restoring_;                      // from what
  int failed_restores_ = 0;                    // in a row
  std::optional<Time> restore_failing_since_;  // for a reason that may not pass
  std::string restore_trouble_;
  std::optional<Saving> saving_;
  bool save_wanted_ = false;
  bool released_ = false;
  bool orphans_collected_ = false;  // in this life of the master
  int failed_saves_ = 0;            // in a row
  Time next_save_at_;
  int64_t version_at_save_ = 0;
  uint64_t lease_at_save_ = 0;
  std::vector<ServerCommand> commands_;
  std::vector<SilentServer> silent_;
  std::optional<std::string> failure_;
};

}  // namespace edl::master
