#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "ps_client/ask.h"
#include "wire/messages.h"

namespace edl::ps_control {

// A message to every lane of one parameter server.
struct ServerMessage {
  int server = 0;
  wire::Welcome welcome;  // the server's answer to Hello, which says how to reach its lanes
  std::vector<std::string> metas;  // by lane
};

// Connections to parameter servers. A channel carries out one request after the other and never
// waits for another channel, so that a server that hangs delays only the channels that talk to it.
//
// Both requests return immediately. Their callback runs once, later, on the thread of the
// PsControllerCore that sent the request, and never after that core was destroyed.
class ServerChannel {
 public:
  using OnWelcome = std::function<void(Result<wire::Welcome>)>;
  using OnAnswers = std::function<void(Result<std::vector<ps_client::LaneAnswer>>)>;

  virtual ~ServerChannel() = default;

  // Sends Hello to the process that listens at the address of slot `server`.
  virtual void Hello(int server, Duration timeout, OnWelcome done) = 0;
  // Sends to all lanes of all these servers at once. Returns the answers in the order of `messages`
  // and lanes, or the first failure. Without a timeout it waits as long as the connections live.
  virtual void Ask(wire::MessageType type, std::vector<ServerMessage> messages,
                   std::optional<Duration> timeout, OnAnswers done) = 0;
  // Closes all connections of the channel. Requests without an answer fail with Cancelled, unless
  // their answer is already here.
  virtual void Reset() = 0;
};

}  // namespace edl::ps_control
