#pragma once

#include <atomic>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "checkpoint/manifest.h"
#include "job/job_view.h"
#include "master/parameters/parameter_keeper.h"
#include "ps_client/ask.h"
#include "ps_control/server_watch.h"

namespace edl::ps_control {

// Carries what the master asks of its parameter servers to them, and back what they say: who they
// are, how they are, and what became of a restore or a save. Each server is watched by a thread of
// its own; restores, saves and what is done to folders have one thread each.
//
// A save or a restore may take as long as it makes progress: it is given up when no server of it
// has saved or restored anything for a while, when the master cancels it, or, a restore, when the
// master asks for another.
//
// Thread-safe.
class PsController {
 public:
  struct Answers {
    std::function<void(uint64_t number, Result<master::ProbeReply>)> probed;
    std::function<void(uint64_t number, Status)> restored;
    std::function<void(uint64_t number, Status)> saved;
    std::function<void(const job::ServerView&)> state;
    std::function<void(int index, uint64_t incarnation)> alive;
  };
  // The address, as host:port, of a server's slot.
  using AddressOf = std::function<Result<std::string>(int index)>;

  struct Options {
    int servers = 1;
    std::string token;
    std::filesystem::path folder;  // where checkpoints are, for the servers too
    // A save or a restore that makes no progress for so long is given up.
    Duration no_progress = std::chrono::seconds(120);
  };

  // `clock` outlives it.
  PsController(Options options, AddressOf address_of, Answers answers, const Clock& clock);
  ~PsController();

  void Do(std::vector<master::ServerCommand> commands);

 private:
  // A restore or a save, from the command on. Shared by the thread that carries it out and those
  // who may stop it.
  struct Long {
    uint64_t number = 0;
    std::atomic<bool> stop = false;
    std::atomic<Time> progress_at;
    std::atomic<bool> stands_still = false;
  };
  using LongPtr = std::shared_ptr<Long>;
  struct RestoreAsked {
    master::RestoreServers restore;
    LongPtr run;
  };
  struct SaveAsked {
    master::SaveAll save;
    LongPtr run;
  };
  using FolderWork = std::variant<master::DropCheckpoint, master::CollectOrphans>;

  void RestoreAllAsked();
  void SaveAllAsked();
  void DoFolderWork();
  void OnRound(bool progressed);
  LongPtr Begin(uint64_t number);
  Result<ps_client::LinkOptions> LinkTo(int index) const;
  Result<wire::Welcome> Probe(int index) const;
  Result<checkpoint::Manifest> ReadCheckpoint(const std::filesystem::path& folder) const;
  Status Restore(const master::RestoreServers& restore, Long& run) const;
  Status Save(const master::SaveAll& save, Long& run) const;
  // Waits as long as it makes progress.
  Result<std::vector<ps_client::LaneAnswer>> AskLong(
      wire::MessageType type, const std::vector<ps_client::Question>& questions, Long& run) const;

  const Options options_;
  const AddressOf address_of_;
  const Answers answers_;
  const Clock& clock_;
  std::atomic<bool> stop_ = false;

  Mutex mutex_;
  CondVar changed_;
  std::deque<RestoreAsked> restores_ GUARDED_BY(mutex_);
  std::deque<SaveAsked> saves_ GUARDED_BY(mutex_);
  std::deque<FolderWork> folder_work_ GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<Long>> longs_ GUARDED_BY(mutex_);  // that may be under way
  LongPtr last_restore_ GUARDED_BY(mutex_);
  uint64_t serve_number_ GUARDED_BY(mutex_) = 0;

  std::vector<std::thread> threads_;
  std::vector<std::unique_ptr<ServerWatch>> watches_;  // by index; they end first
};

}  // namespace edl::ps_control
