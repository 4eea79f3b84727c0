#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/event_loop.h"
#include "base/status.h"
#include "master/parameters/parameter_keeper.h"
#include "ps_control/folder_store.h"
#include "ps_control/operation_channel.h"
#include "ps_control/ps_controller_core.h"
#include "ps_control/task_thread.h"
#include "ps_control/watch_channel.h"

namespace edl::ps_control {

// Carries out the commands of the master for its parameter servers, and answers them. The decisions
// are those of PsControllerCore, which runs on a loop of its own; here are the threads that wait
// for servers and for storage: one for each server, for restores, for saves and for removals.
//
// Thread-safe.
class PsController {
 public:
  // Called on the controller's thread. They must not block.
  using Answers = PsControllerCore::Answers;
  // Returns the address, as host:port, of a server's slot. Called on any thread.
  using AddressOf = std::function<Result<std::string>(int index)>;

  struct Options {
    int servers = 1;
    std::string token;
    PsControllerCore::Options core;
  };

  // `clock` outlives it. Fails when there are no file descriptors left.
  static Result<std::unique_ptr<PsController>> Start(const Options& options, AddressOf address_of,
                                                     const Answers& answers, const Clock& clock);
  // Cancels what is under way, without an answer.
  ~PsController();
  PsController(const PsController&) = delete;
  PsController& operator=(const PsController&) = delete;

  void Do(std::vector<master::ServerCommand> commands);

 private:
  PsController(std::unique_ptr<EventLoop> loop, const Options& options, AddressOf address_of,
               const Answers& answers, const Clock& clock);

  Result<ps_client::LinkOptions> LinkOf(int index) const;
  void PostToCore(std::function<void()> work);

  const std::string token_;
  const AddressOf address_of_;
  std::unique_ptr<PsControllerCore> core_;  // confined to the loop; null: not started, or ended
  LoopThread loop_;
  TaskThread save_thread_;
  TaskThread restore_thread_;
  std::unique_ptr<OperationChannel> saves_;
  std::unique_ptr<OperationChannel> restores_;
  std::vector<std::unique_ptr<WatchChannel>> watches_;  // by index
  std::unique_ptr<FolderStore> store_;
};

}  // namespace edl::ps_control
