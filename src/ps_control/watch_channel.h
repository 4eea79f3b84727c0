#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "ps_client/link.h"
#include "ps_control/operation_channel.h"
#include "ps_control/server_channel.h"
#include "ps_control/task_thread.h"

namespace edl::ps_control {

// The channel of the watch of one server. It has a thread of its own, and keeps its connections:
// one for Hello and one to each lane.
//
// Thread-safe.
class WatchChannel final : public ServerChannel {
 public:
  // A connection is replaced after so many Hellos, because a server closes one that sends 64
  // without naming a lane. It also ends a connection to a process that was replaced and still
  // answers.
  static constexpr int kMostHellos = 60;

  // `clock` outlives it.
  WatchChannel(LinkTo link_to, Post post, const Clock& clock);
  // Cancels the request that is under way.
  ~WatchChannel() override { stop_ = true; }

  void Hello(int server, Duration timeout, OnWelcome done) override;
  // REQUIRES: one message, to the server that Hello was sent to; a timeout.
  void Ask(wire::MessageType type, std::vector<ServerMessage> messages,
           std::optional<Duration> timeout, OnAnswers done) override;
  // Closes the connections after the request that is under way, which is not cancelled: it has a
  // timeout.
  void Reset() override;

 private:
  Result<wire::Welcome> SendHello(int server, Duration timeout);
  Result<wire::Welcome> SendHelloOnNewConnection(const ps_client::LinkOptions& to,
                                                 Duration timeout);
  Result<wire::Welcome> SendHelloOnKeptConnection(Duration timeout);
  Result<std::vector<ps_client::LaneAnswer>> AskLanes(wire::MessageType type,
                                                      const ServerMessage& message,
                                                      Duration timeout);
  Status ConnectLanes(const ServerMessage& message);
  // Drives the links until every request is done. A failure closes all of them.
  Status Finish(const std::vector<ps_client::Link*>& links,
                std::vector<ps_client::LinkRequest>& requests, Duration timeout);

  const LinkTo link_to_;
  const Post post_;
  const Clock& clock_;
  std::atomic<bool> stop_ = false;

  // Confined to the thread.
  std::unique_ptr<ps_client::Link> control_link_;  // null: not connected
  int hellos_ = 0;                                 // sent on that connection
  std::vector<std::unique_ptr<ps_client::Link>> lanes_;
  job::PsIncarnation lanes_incarnation_;
  TaskThread thread_;  // ends first
};

}  // namespace edl::ps_control
