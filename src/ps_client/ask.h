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

// A request to a lane on a connection of its own.
struct Question {
  LinkOptions to;
  std::string meta;
};
struct LaneAnswer {
  std::string meta;
  job::PsIncarnation incarnation;  // of the server that answered
};

struct AskOptions {
  Duration dial = std::chrono::seconds(1);  // for each connection
  std::optional<Duration> timeout;          // for all answers; nullopt: no limit
  // While answers are missing, a Hello on another connection checks each server at this interval.
  // If it is not answered within this time, or another incarnation answers, the server is lost:
  // DeadlineExceeded or Unavailable. nullopt: servers are not checked.
  std::optional<Duration> silence;
  const std::atomic<bool>* stop = nullptr;  // outlives the call; once true, it fails with Cancelled
};

// Sends a request to each of several lanes and waits for all answers. Returns the first failure.
Result<std::vector<LaneAnswer>> Ask(wire::MessageType type, const std::vector<Question>& questions,
                                    const AskOptions& options, const Clock& clock);

// Requests the Welcome of a server, with a Hello that is for no lane.
Result<wire::Welcome> AskWho(LinkOptions server, const AskOptions& options, const Clock& clock);

// The link options of each lane of the server that sent `welcome`.
std::vector<LinkOptions> LanesOf(const LinkOptions& server, const wire::Welcome& welcome);

}  // namespace edl::ps_client
