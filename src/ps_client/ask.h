#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "ps_client/link.h"
#include "wire/messages.h"

namespace edl::ps_client {

// One question to a lane, on a connection of its own.
struct Question {
  LinkOptions to;
  std::string meta;
};
struct LaneAnswer {
  std::string meta;
  uint64_t incarnation = 0;  // of the server that gave it
};

struct AskOptions {
  Duration dial = std::chrono::seconds(1);  // for each connection
  std::optional<Duration> timeout;          // for all answers; none: as long as they are connected
  // While answers are missing, their servers are asked who they are on other connections, about
  // this often. One that does not answer that within this time, or is another by now, is lost:
  // DeadlineExceeded or Unavailable. None: they are not asked.
  std::optional<Duration> silence;
  const std::atomic<bool>* stop = nullptr;  // outlives the call; once true it fails with Cancelled
};

// Asks all lanes at once and waits for all. The first failure.
Result<std::vector<LaneAnswer>> Ask(wire::MessageType type, const std::vector<Question>& questions,
                                    const AskOptions& options, const Clock& clock);

// What a server says of itself, from a Hello that only asks.
Result<wire::Welcome> AskWho(LinkOptions server, const AskOptions& options, const Clock& clock);

// How each lane of the server that gave the welcome is reached.
std::vector<LinkOptions> LanesOf(const LinkOptions& server, const wire::Welcome& welcome);

}  // namespace edl::ps_client
