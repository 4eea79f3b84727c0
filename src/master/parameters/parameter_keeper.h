#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/strong_id.h"
#include "checkpoint/shard_set.h"
#include "job/job_spec.h"
#include "job/job_view.h"
#include "master/ledger/ledger.h"
#include "master/shards/dispatcher.h"

namespace edl::master {

// Commands for the parameter servers. The controller (src/ps_control) carries them out after the
// commit that decided them. An answer names the number of its command.

using PsCommandId = StrongId<struct PsCommandIdTag, uint64_t>;

// Ask for the identity of the process at a server's address.
struct ProbeServer {
  PsCommandId number;
  int index = 0;
};
// Replace the parameters of these servers by those of a checkpoint.
struct RestoreServers {
  struct Server {
    int index = 0;
    PsIncarnation incarnation;
  };
  PsCommandId number;
  PsEpoch ps_epoch;
  std::vector<Server> servers;
  std::string checkpoint;  // its name; empty: the servers start without parameters
  // The checkpoint is the path of a checkpoint of another job. Its parameters are restored, its
  // watermarks are not.
  bool of_another_job = false;
};
// Let all servers serve in this epoch, and drop watermarks that are no longer needed.
struct ServeAll {
  PsEpoch ps_epoch;
  std::vector<PsIncarnation> incarnations;  // of the servers, by index
  bool may_push = false;                    // false: Open waits
  LeaseId floor;                            // leases below this id have ended
  checkpoint::ShardSet covered;             // shards that no restore will have trained again
  std::vector<bool> released;  // servers that may exit: their parameters are saved or unneeded
};
// Save the parameters of all servers.
struct SaveAll {
  PsCommandId number;
  std::string name;
  PsEpoch ps_epoch;
  std::vector<PsIncarnation> incarnations;
  int64_t version = 0;
  checkpoint::ShardSet covered;
  bool flush = false;  // first close open synchronous rounds: no worker will complete them
};
// Cancel a save whose result is not needed any more. The save is still answered.
struct CancelSave {
  PsCommandId number;
};
// Remove a checkpoint, complete or not.
struct DropCheckpoint {
  std::string name;
};
// Remove the folders of saves that this ledger began and does not name: the master died during the
// save, or an earlier removal failed. Folders of other ledgers stay.
struct CollectOrphans {
  LedgerId ledger;
  std::vector<std::string> keep;
  int64_t below = 0;  // only saves with a smaller number are removed
};
using ServerCommand = std::variant<ProbeServer, RestoreServers, ServeAll, SaveAll, CancelSave,
                                   DropCheckpoint, CollectOrphans>;

// The identity of a parameter server.
struct ProbeReply {
  PsIncarnation incarnation;
  uint32_t lanes = 0;
};

// A parameter server that has not answered for too long.
struct SilentServer {
  int64_t replica = -1;  // its replica id
  std::string why;
};

// Keeps the parameters consistent with the ledger: every shard that the ledger counts as done is in
// the parameters once, even if processes die. Takes checkpoints, restores a new server from the
// last one, and reopens the shards that this checkpoint lacks. docs/states/parameters.md.
//
// Confined: call it on the master's loop.
class ParameterKeeper {
 public:
  // A restore uses only this many of the newest checkpoints, even if more are kept.
  static constexpr size_t kUsable = 2;
  static constexpr Duration kProbeInterval = std::chrono::milliseconds(100);
  static constexpr Duration kSaveAgain = std::chrono::seconds(2);  // after a save that failed
  // So many failures in a row of the save that the end of the job waits for fail the job.
  static constexpr int kMostFailedSaves = 5;
  // A server that has never answered may take longer than one that has.
  static constexpr Duration kFirstAnswer = std::chrono::seconds(60);
  // `status` shows a missing answer only after this time.
  static constexpr Duration kShowSilence = std::chrono::seconds(3);
  static constexpr Duration kRestoreBackoff = std::chrono::seconds(5);  // at most
  // How long a restore is retried that fails for a reason which neither a new server nor another
  // checkpoint would remove.
  static constexpr Duration kRestoreTimeout = std::chrono::seconds(120);

  // All references outlive this object. It does nothing for a job without parameter servers of
  // ours.
  ParameterKeeper(Ledger& ledger, Dispatcher& dispatcher, const job::JobSpec& spec)
      : ledger_(ledger), dispatcher_(dispatcher), spec_(spec) {}

  bool enabled() const { return spec_.own_ps; }
  // `saved` is what Flush wrote; empty: the ledger is new, and gets the id `new_ledger`.
  Status Load(const std::string& saved, LedgerId new_ledger, Time now);

  // `running`: for each server's slot, the id of the replica that runs there, or -1.
  void Tick(const std::vector<int64_t>& running, Time now);

  void OnProbed(PsCommandId number, const Result<ProbeReply>& reply, Time now);
  // DataLoss: the checkpoint is damaged. NotFound: the master does not see the checkpoint either.
  void OnRestored(PsCommandId number, const Status& status, Time now);
  void OnSaved(PsCommandId number, const Status& status, Time now);
  // The state of a server. For an unexpected incarnation only the incarnation counts.
  void OnState(const job::ServerView& state, Time now);
  // The server's process answers, although its lanes may be too busy to report their state.
  void OnAlive(int index, PsIncarnation incarnation, Time now);

  std::vector<ServerCommand> TakeCommands() { return std::exchange(commands_, {}); }
  // Servers to be replaced because they do not answer.
  std::vector<SilentServer> TakeSilent() { return std::exchange(silent_, {}); }
  void Flush();

  // True: everything that is done survives the loss of every server.
  bool IsDurable() const;
  // The servers are not needed any more and may exit.
  void Release();
  // Takes a checkpoint as soon as possible.
  void WantSave() { save_wanted_ = save_wanted_ || can_save(); }
  bool IsSaving() const { return saving_.has_value() || save_wanted_; }
  // Why the job cannot continue; nullopt while it can.
  const std::optional<std::string>& failure() const { return failure_; }

  LedgerId ledger_id() const { return ledger_id_; }
  PsEpoch ps_epoch() const { return ps_epoch_; }
  // Lanes of each server. Constant for a ledger, unless --resume changes --ps_lanes.
  int64_t lanes() const { return lanes_; }
  std::vector<job::ServerView> View(Time now) const;

  struct Checkpoint {
    std::string name;
    bool users = false;  // due by --checkpoint_steps, so kept for the user
    int64_t version = 0;
    checkpoint::ShardSet covered;
  };
  const std::vector<Checkpoint>& checkpoints() const { return checkpoints_; }
  // Damaged checkpoints: kept for inspection, shown in `status`, and never used.
  struct BadCheckpoint {
    std::string name;
    std::string why;
  };
  const std::vector<BadCheckpoint>& bad_checkpoints() const { return bad_; }

 private:
  enum class Phase {
    kGathering,  // until the identity of every server is known
    kRestoring,
    kServing,
  };
  // A server's slot and the process that runs there.
  struct Slot {
    int64_t replica = -1;       // the id of the replica that runs there; -1: none
    PsCommandId probe_number;   // of the probe under way; 0: none
    PsIncarnation incarnation;  // that answered; 0: none yet
    Time probe_at;              // the next probe is not before this
    bool released = false;      // it wants to exit, and its parameters were saved since
    Time heard_at;              // at first, the time when it began to run
    bool has_answered = false;
    Time replace_at;      // the next request to replace it is not before this
    std::string trouble;  // why its last answer was not accepted
    job::ServerView state;
  };
  // A server whose parameters the ledger relies on.
  struct Served {
    int64_t replica = -1;
    PsIncarnation incarnation;
  };
  struct Saving {
    PsCommandId number;
    PsEpoch ps_epoch;
    Checkpoint checkpoint;
    std::vector<size_t> leaving;  // servers that accepted no pushes any more when it began
  };

  // Nothing is trained (`elasticdl evaluate`, `elasticdl predict`), so the parameters are always
  // those of --checkpoint_dir_for_init.
  bool read_only() const { return spec_.model && !spec_.model->trains(); }
  bool can_save() const { return spec_.recovery_checkpoint_secs > 0 && !read_only(); }
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
  std::vector<PsIncarnation> Incarnations() const;
  void UpdateRule();

  Ledger& ledger_;
  Dispatcher& dispatcher_;
  const job::JobSpec& spec_;
  LedgerId ledger_id_;
  PsEpoch ps_epoch_;
  int64_t lanes_ = 0;
  int64_t next_save_ = 1;
  std::vector<Served> served_;
  std::vector<Checkpoint> checkpoints_;  // oldest first
  size_t usable_ = 0;               // of the newest: servers keep the watermarks of what these lack
  std::vector<BadCheckpoint> bad_;  // oldest first
  bool dirty_ = false;

  Phase phase_ = Phase::kGathering;
  std::vector<Slot> slots_;
  PsCommandId last_number_;
  PsCommandId restore_number_;
  std::string restoring_;                      // the checkpoint, for `status`
  int failed_restores_ = 0;                    // in a row
  std::optional<Time> restore_failing_since_;  // for a reason that may be permanent
  std::string restore_trouble_;
  std::optional<Saving> saving_;
  bool save_wanted_ = false;
  bool released_ = false;
  bool orphans_collected_ = false;  // since this master started
  int failed_saves_ = 0;            // in a row
  Time next_save_at_;
  int64_t version_at_save_ = 0;
  uint64_t lease_at_save_ = 0;
  std::vector<ServerCommand> commands_;
  std::vector<SilentServer> silent_;
  std::optional<std::string> failure_;
};

}  // namespace edl::master
