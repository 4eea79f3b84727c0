#include "ps_client/ask.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include <poll.h>

namespace edl::ps_client {
namespace {

// Between two checks of the timeout and of options.stop.
constexpr int kLookEveryMs = 100;

Status CheckTime(const AskOptions& options, const Clock& clock, Time begin) {
  if (options.stop != nullptr && options.stop->load(std::memory_order_relaxed)) {
    return Cancelled("stopped while waiting for an answer of a parameter server");
  }
  if (options.timeout.has_value() && clock.Now() - begin > *options.timeout) {
    return DeadlineExceeded(
        "no answer of a parameter server within {} ms",
        std::chrono::duration_cast<std::chrono::milliseconds>(*options.timeout).count());
  }
  return Ok();
}

std::string NameOf(const LinkOptions& to) { return fmt::format("{}:{}", to.host, to.port); }

// Checks that the servers whose answers are due can be reached, and were not restarted.
Status CheckServers(const std::vector<std::unique_ptr<Link>>& links,
                    const std::vector<LinkRequest>& requests, const AskOptions& options,
                    const Clock& clock) {
  std::set<std::pair<std::string, uint16_t>> asked;
  for (size_t i = 0; i < links.size(); ++i) {
    const LinkOptions& to = links[i]->options();
    if (requests[i].done || !asked.emplace(to.host, to.port).second) continue;
    const Result<wire::Welcome> welcome =
        AskWho(to, {.dial = options.dial, .timeout = options.silence, .stop = options.stop}, clock);
    if (!welcome.ok()) return welcome.status().Within(NameOf(to));
    if (links[i]->greeted() && welcome->incarnation != links[i]->welcome().incarnation) {
      return Unavailable("{} was restarted before it answered", NameOf(to));
    }
  }
  return Ok();
}

}  // namespace

Result<std::vector<LaneAnswer>> Ask(wire::MessageType type, const std::vector<Question>& questions,
                                    const AskOptions& options, const Clock& clock) {
  const Time begin = clock.Now();
  std::vector<std::unique_ptr<Link>> links;
  std::vector<LinkRequest> requests(questions.size());
  for (size_t i = 0; i < questions.size(); ++i) {
    links.push_back(std::make_unique<Link>(questions[i].to));
    requests[i].type = type;
    requests[i].meta = questions[i].meta;
    EDL_RETURN_IF_ERROR(links[i]->Connect(options.dial).Within(NameOf(questions[i].to)));
    links[i]->Send(requests[i]);
  }
  const auto is_done = [](const LinkRequest& request) { return request.done; };
  Time checked = begin;
  while (!std::ranges::all_of(requests, is_done)) {
    std::vector<pollfd> waiting;
    std::vector<Link*> woken;
    for (size_t i = 0; i < links.size(); ++i) {
      if (requests[i].done) continue;
      EDL_RETURN_IF_ERROR(links[i]->Pump().Within(NameOf(questions[i].to)));
      if (requests[i].done) continue;
      waiting.push_back({.fd = links[i]->fd(), .events = links[i]->events(), .revents = 0});
      woken.push_back(links[i].get());
    }
    if (waiting.empty()) break;
    EDL_RETURN_IF_ERROR(CheckTime(options, clock, begin));
    if (options.silence.has_value() && clock.Now() - checked >= *options.silence) {
      EDL_RETURN_IF_ERROR(CheckServers(links, requests, options, clock));
      checked = clock.Now();
    }
    poll(waiting.data(), waiting.size(), kLookEveryMs);
    for (Link* const link : woken) link->OnReady();
  }
  std::vector<LaneAnswer> answers;
  for (size_t i = 0; i < requests.size(); ++i) {
    EDL_RETURN_IF_ERROR(std::move(requests[i].status).Within(NameOf(questions[i].to)));
    answers.push_back({std::move(requests[i].answer), requests[i].incarnation});
  }
  return answers;
}

Result<wire::Welcome> AskWho(LinkOptions server, const AskOptions& options, const Clock& clock) {
  const Time begin = clock.Now();
  server.lanes_in_job = 0;
  Link link(std::move(server));
  EDL_RETURN_IF_ERROR(link.Connect(options.dial));
  while (true) {
    EDL_RETURN_IF_ERROR(link.Pump());
    if (link.idle()) return link.welcome();
    EDL_RETURN_IF_ERROR(CheckTime(options, clock, begin));
    pollfd waiting{.fd = link.fd(), .events = link.events(), .revents = 0};
    poll(&waiting, 1, kLookEveryMs);
    link.OnReady();
  }
}

std::vector<LinkOptions> LanesOf(const LinkOptions& server, const wire::Welcome& welcome) {
  std::vector<LinkOptions> lanes;
  for (uint32_t lane = 0; lane < welcome.lanes; ++lane) {
    lanes.push_back(server);
    lanes.back().lane_in_server = job::LaneInServer(lane);
    lanes.back().lane_in_job = job::LaneInJob(welcome.index * welcome.lanes + lane);
    lanes.back().lanes_in_job = welcome.servers * welcome.lanes;
  }
  return lanes;
}

}  // namespace edl::ps_client
