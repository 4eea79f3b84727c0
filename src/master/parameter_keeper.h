#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "job/job_spec.h"
#include "job/job_view.h"
#include "job/shard_set.h"
#include "master/dispatcher.h"
#include "master/ledger.h"

namespace edl::master {

// What the keeper asks of the parameter servers, carried out after the commit that decided it by
// whoever can reach them. An answer names the number of what it answers.

// Ask a server who it is.
struct GreetServer {
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
  job::ShardSet covered;               // shards that no restore will ask for
  std::vector<bool> released;          // servers that may end: what they have is saved or unneeded
};
// Save the parameters of all servers.
struct SaveAll {
  uint64_t number = 0;
  std::string name;
  uint64_t ps_epoch = 0;
  std::vector<uint64_t> incarnations;
  int64_t version = 0;
  job::ShardSet covered;
  bool flush = false;  // close rounds that are open first: nobody will fill them
};
// Remove a checkpoint, or what there is of it.
struct DropCheckpoint {
  std::string name;
};
using ServerCommand = std::variant<GreetServer, RestoreServers, ServeAll, SaveAll, DropCheckpoint>;

// Keeps what the parameter servers have exactly as good as what the ledger says is done, whatever
// dies: takes checkpoints, restores a server that comes anew from the last one, and has trained
// again what that one lacks. docs/states/parameters.md.
//
// Confined: call it on the master's loop.
class ParameterKeeper {
 public:
  // A restore may use only this many of the newest checkpoints, however many are kept.
  static constexpr size_t kUsable = 2;
  static constexpr Duration kGreetEvery = std::chrono::milliseconds(100);
  static constexpr Duration kSaveAgain = std::chrono::seconds(2);  // after one that failed
  static constexpr int kMostFailedSaves = 5;  // in a row, of the one that the end waits for

  // All outlive it. It does nothing for a job whose parameters are kept elsewhere.
  ParameterKeeper(Ledger& ledger, Dispatcher& dispatcher, const job::JobSpec& spec)
      : ledger_(ledger), dispatcher_(dispatcher), spec_(spec) {}

  bool enabled() const { return spec_.own_ps; }
  // `saved` is what Flush wrote; empty: the ledger is new, and gets `new_ledger` as its number.
  Status Load(const std::string& saved, uint64_t new_ledger, Time now);

  // `running`: of each server's slot the replica id that runs there, or -1.
  void Tick(const std::vector<int64_t>& running, Time now);

  void OnGreeted(uint64_t number, const Result<uint64_t>& incarnation, Time now);
  void OnRestored(uint64_t number, const Status& status, Time now);
  void OnSaved(uint64_t number, const Status& status, Time now);
  // What a server said of itself. Of one that is not known, all that counts is who it is.
  void OnState(const job::ServerView& state);

  std::vector<ServerCommand> TakeCommands() { return std::exchange(commands_, {}); }
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
  std::vector<job::ServerView> View() const;

  struct Checkpoint {
    std::string name;
    bool users = false;  // asked for by --checkpoint_steps
    int64_t version = 0;
    job::ShardSet covered;
  };
  const std::vector<Checkpoint>& checkpoints() const { return checkpoints_; }

 private:
  enum class Phase {
    kGathering,  // until every server has said who it is
    kRestoring,
    kServing,
  };
  // One life of a server, as far as it is known.
  struct Slot {
    int64_t replica = -1;       // that runs there
    uint64_t greet_number = 0;  // of the question that is open
    uint64_t incarnation = 0;   // that answered; 0: none yet
    Time greet_at;              // not before
    bool released = false;      // it leaves, and was saved since
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
  void Observe(const std::vector<int64_t>& running);
  void Greet(Time now);
  void Decide(Time now);
  void Serve();
  bool SaveIsDue(Time now) const;
  bool IsStepDue() const;
  void BeginSave(Time now);
  void Prune();
  job::ShardSet DoneShards() const;
  std::vector<uint64_t> Incarnations() const;
  void UpdateRule();

  Ledger& ledger_;
  Dispatcher& dispatcher_;
  const job::JobSpec& spec_;
  uint64_t ledger_id_ = 0;
  uint64_t ps_epoch_ = 0;
  int64_t next_save_ = 1;
  std::vector<Served> served_;
  std::vector<Checkpoint> checkpoints_;  // oldest first
  size_t usable_ = 0;                    // of the newest: what these lack, servers have marks of
  bool dirty_ = false;

  Phase phase_ = Phase::kGathering;
  std::vector<Slot> slots_;
  uint64_t last_number_ = 0;
  uint64_t restore_number_ = 0;
  std::optional<Saving> saving_;
  bool save_wanted_ = false;
  bool released_ = false;
  int failed_saves_ = 0;  // in a row
  Time next_save_at_;
  int64_t version_at_save_ = 0;
  uint64_t lease_at_save_ = 0;
  std::vector<ServerCommand> commands_;
  std::optional<std::string> failure_;
};

}  // namespace edl::master
