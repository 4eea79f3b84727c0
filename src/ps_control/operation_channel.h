#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "ps_client/link.h"
#include "ps_control/server_channel.h"
#include "ps_control/task_thread.h"

namespace edl::ps_control {

// How to reach a server's slot now. Thread-safe.
using LinkTo = std::function<Result<ps_client::LinkOptions>(int index)>;
// Runs a function on the thread of the PsControllerCore, unless that core was destroyed.
// Thread-safe.
using Post = std::function<void(std::function<void()>)>;

// The channel of saves, and that of restores: every request uses new connections.
//
// Thread-safe.
class OperationChannel final : public ServerChannel {
 public:
  // `thread` and `clock` outlive it.
  OperationChannel(TaskThread& thread, LinkTo link_to, Post post, const Clock& clock);
  // Cancels the request that is under way.
  ~OperationChannel() override { Reset(); }

  void Hello(int server, Duration timeout, OnWelcome done) override;
  void Ask(wire::MessageType type, std::vector<ServerMessage> messages,
           std::optional<Duration> timeout, OnAnswers done) override;
  void Reset() override;

 private:
  // Shared by the requests of a channel and the channel. True: they stop waiting.
  using Stop = std::shared_ptr<std::atomic<bool>>;

  Stop CurrentStop();

  TaskThread& thread_;
  const LinkTo link_to_;
  const Post post_;
  const Clock& clock_;
  Mutex mutex_;
  Stop stop_ GUARDED_BY(mutex_) = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace edl::ps_control
