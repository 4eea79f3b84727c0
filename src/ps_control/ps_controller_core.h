#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "job/job_view.h"
#include "master/parameters/parameter_keeper.h"
#include "ps_control/checkpoint_store.h"
#include "ps_control/operation.h"
#include "ps_control/server_channel.h"
#include "ps_control/server_watch.h"

namespace edl::ps_control {

// Everything that the controller of parameter servers decides, without threads, sockets and files:
// which messages a server gets, in which order a save and a restore proceed, when they fail, and
// what the master is answered. PsController runs it in production; the simulation runs it in
// virtual time.
//
// - Every server is watched (ServerWatch).
// - Saves are carried out one after the other, and so are restores. A new restore cancels those
//   before it.
// - Every probe, save and restore is answered once, cancelled ones included.
//
// Confined: commands and all callbacks of its channels, store and timers run on one thread.
class PsControllerCore {
 public:
  struct Answers {
    std::function<void(master::PsCommandId number, Result<master::ProbeReply>)> probed;
    std::function<void(master::PsCommandId number, Status)> restored;
    std::function<void(master::PsCommandId number, Status)> saved;
    std::function<void(const job::ServerView&)> state;
    std::function<void(int index, job::PsIncarnation incarnation)> alive;
  };
  struct Options {
    std::filesystem::path folder;  // of the job's checkpoints, the same for the servers
    // A save or a restore that makes no progress for this long fails.
    Duration no_progress = std::chrono::seconds(120);
  };
  // All of these outlive the core.
  struct Channels {
    std::vector<ServerChannel*> watches;  // one for each server, by index
    ServerChannel& restores;
    ServerChannel& saves;
  };

  PsControllerCore(const Options& options, const Channels& channels, CheckpointStore& store,
                   const Answers& answers, const CallAfter& call_after, const Clock& clock);

  void Do(std::vector<master::ServerCommand> commands);

 private:
  void Handle(const master::ProbeServer& probe);
  void Handle(const master::RestoreServers& restore);
  void Handle(const master::ServeAll& serve);
  void Handle(const master::SaveAll& save);
  void Handle(const master::CancelSave& cancel);
  void Handle(const master::DropCheckpoint& drop);
  void Handle(const master::CollectOrphans& collect);
  void OnRound(bool progressed);

  const OperationContext context_;
  ServerChannel& restore_channel_;
  ServerChannel& save_channel_;
  CheckpointStore& store_;
  OperationQueue restores_;
  OperationQueue saves_;
  uint64_t serve_number_ = 0;
  std::vector<std::unique_ptr<ServerWatch>> watches_;  // by index
};

}  // namespace edl::ps_control
