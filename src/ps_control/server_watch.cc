#include "ps_control/server_watch.h"

#include <algorithm>
#include <span>
#include <utility>

#include <poll.h>

#include "base/log.h"

namespace edl::ps_control {
namespace {

using ps_client::Link;
using ps_client::LinkOptions;
using ps_client::Request;

constexpr std::chrono::milliseconds kLookEvery{500};
constexpr std::chrono::seconds kDial{1};
constexpr std::chrono::seconds kTimeout{5};
// For servers that nobody has let serve: a lane that is being restored has no time to answer.
constexpr std::chrono::milliseconds kTimeoutBefore{500};
constexpr int kPollMs = 100;
// A server closes a connection that says Hello 64 times and never for which lane it is.
constexpr int kMostHellos = 60;

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

// Waits for the answer to the Hello with which a connection begins.
Result<wire::Welcome> AwaitWelcome(Link& link, Duration timeout, const Clock& clock,
                                   const std::atomic<bool>& stop) {
  const Time begin = clock.Now();
  while (true) {
    EDL_RETURN_IF_ERROR(link.Pump());
    if (link.idle()) return link.welcome();
    if (stop) return Cancelled("the master ends");
    if (clock.Now() - begin > timeout) return DeadlineExceeded("no answer");
    pollfd waiting{.fd = link.fd(), .events = link.events(), .revents = 0};
    poll(&waiting, 1, kPollMs);
    link.OnReady();
  }
}

// Moves all links until every request is done, and gives up those that are not.
Status Finish(const std::vector<Link*>& links, std::vector<Request>& requests, Duration timeout,
              const Clock& clock, const std::atomic<bool>& stop) {
  const Time begin = clock.Now();
  const auto move = [&]() -> Status {
    while (true) {
      std::vector<pollfd> waiting;
      std::vector<Link*> woken;
      for (size_t i = 0; i < links.size(); ++i) {
        if (requests[i].done) continue;
        EDL_RETURN_IF_ERROR(links[i]->Pump());
        if (requests[i].done) continue;
        waiting.push_back({.fd = links[i]->fd(), .events = links[i]->events(), .revents = 0});
        woken.push_back(links[i]);
      }
      if (waiting.empty()) return Ok();
      if (stop) return Cancelled("the master ends");
      if (clock.Now() - begin > timeout) return DeadlineExceeded("no answer");
      poll(waiting.data(), waiting.size(), kPollMs);
      for (Link* const link : woken) link->OnReady();
    }
  };
  Status moved = move();
  if (!moved.ok()) {
    for (Link* const link : links) link->GiveUp(moved);
    return moved;
  }
  for (Request& request : requests) {
    if (!request.status.ok()) return request.status;
  }
  return Ok();
}

}  // namespace

ServerWatch::ServerWatch(int index, int servers, LinkTo link_to, Answers answers,
                         const Clock& clock)
    : index_(index),
      servers_(servers),
      link_to_(std::move(link_to)),
      answers_(std::move(answers)),
      clock_(clock),
      thread_([this] { Run(); }) {}

ServerWatch::~ServerWatch() {
  stop_ = true;
  {
    const MutexLock lock(mutex_);
    changed_.NotifyAll();
  }
  thread_.join();
}

void ServerWatch::Probe(uint64_t number) {
  const MutexLock lock(mutex_);
  probes_.push_back(number);
  changed_.NotifyAll();
}

void ServerWatch::Serve(Serving serve, uint64_t number) {
  const MutexLock lock(mutex_);
  serve_ = std::move(serve);
  serve_number_ = number;
  changed_.NotifyAll();
}

void ServerWatch::Run() {
  uint64_t seen = 0;
  while (!stop_) {
    Round();
    const auto next = std::chrono::steady_clock::now() + kLookEvery;
    const MutexLock lock(mutex_);
    while (!stop_ && probes_.empty() && serve_number_ == seen && changed_.WaitUntil(mutex_, next)) {
    }
    seen = serve_number_;
  }
}

void ServerWatch::Round() {
  std::deque<uint64_t> probes;
  Serving serve;
  uint64_t number = 0;
  {
    const MutexLock lock(mutex_);
    std::swap(probes, probes_);
    serve = serve_;
    number = serve_number_;
  }
  progressed_ = false;
  // Whoever probes wants to know who has the address now. A kept connection may lead to a server
  // that was given up and still answers.
  if (!probes.empty()) control_link_.reset();
  const Result<wire::Welcome> welcome = AskWho();
  for (const uint64_t reply : probes) {
    if (welcome.ok()) {
      answers_.probed(reply, master::ProbeReply{welcome->incarnation, welcome->lanes});
    } else {
      answers_.probed(reply, welcome.status());
    }
  }
  if (welcome.ok()) {
    answers_.alive(index_, welcome->incarnation);
    JobSnapshot(*welcome, serve, number);
  } else {
    lanes_.clear();
  }
  answers_.round(progressed_);
}

Result<wire::Welcome> ServerWatch::AskWho() {
  EDL_ASSIGN_OR_RETURN(LinkOptions to, link_to_(index_));
  to.lanes = 0;
  // A slot may get another address.
  if (control_link_ != nullptr &&
      (control_link_->options().host != to.host || control_link_->options().port != to.port)) {
    control_link_.reset();
  }
  if (hellos_ >= kMostHellos) control_link_.reset();
  const std::string hello = wire::Encode(wire::Hello{.token = to.token, .caller = to.caller});
  const auto ask = [&]() -> Result<wire::Welcome> {
    std::vector<Request> requests(1);
    requests[0].type = wire::MessageType::kHello;
    requests[0].meta = hello;
    control_link_->Send(requests[0]);
    ++hellos_;
    EDL_RETURN_IF_ERROR(Finish({control_link_.get()}, requests, kTimeout, clock_, stop_));
    wire::Welcome welcome;
    EDL_RETURN_IF_ERROR(wire::Decode(Bytes(requests[0].answer), welcome));
    return welcome;
  };
  Result<wire::Welcome> welcome = Unavailable("not connected");
  if (control_link_ != nullptr) welcome = ask();
  // A kept connection may have been closed since: that says nothing about the server.
  if (!welcome.ok() && welcome.status().code() != Code::kDeadlineExceeded) {
    control_link_ = std::make_unique<Link>(to);
    hellos_ = 1;
    const Status connected = control_link_->Connect(kDial);
    welcome = connected.ok() ? AwaitWelcome(*control_link_, kTimeout, clock_, stop_)
                             : Result<wire::Welcome>(connected);
  }
  if (!welcome.ok()) {
    control_link_.reset();
    return welcome.status();
  }
  if (welcome->index != static_cast<uint32_t>(index_) ||
      welcome->servers != static_cast<uint32_t>(servers_)) {
    return Unavailable("{}:{} is server {} of {}, and not {} of {}", to.host, to.port,
                       welcome->index, welcome->servers, index_, servers_);
  }
  progressed_ =
      welcome->incarnation != progress_incarnation_ || welcome->progress_bytes != progress_bytes_;
  progress_incarnation_ = welcome->incarnation;
  progress_bytes_ = welcome->progress_bytes;
  return welcome;
}

// Tells the server what it may do, if it does not know yet, and hears how it is.
void ServerWatch::JobSnapshot(const wire::Welcome& welcome, const Serving& serve, uint64_t number) {
  if (serve != nullptr &&
      serve->incarnations.at(static_cast<size_t>(index_)) != welcome.incarnation) {
    // Another life is the master's business first.
    answers_.state({.index = index_, .incarnation = welcome.incarnation});
    lanes_.clear();
    control_link_.reset();
    return;
  }
  if (known_.incarnation != welcome.incarnation) {
    known_ = {.incarnation = welcome.incarnation, .at = clock_.Now()};
  }
  const Status looked = [&]() -> Status {
    EDL_RETURN_IF_ERROR(ConnectLanes(welcome));
    if (serve != nullptr && known_.serve_told != number) {
      EDL_RETURN_IF_ERROR(TellServe(*serve, number));
    }
    EDL_ASSIGN_OR_RETURN(const job::ServerView view,
                         AskState(welcome.incarnation, serve == nullptr ? Duration(kTimeoutBefore)
                                                                        : Duration(kTimeout)));
    answers_.state(view);
    return Ok();
  }();
  if (looked.ok()) return;
  LOG_DEBUG("parameter server {}: {}", index_, looked.message());
  lanes_.clear();
}

Status ServerWatch::TellServe(const master::ServeAll& serve, uint64_t number) {
  const auto index = static_cast<size_t>(index_);
  const std::string meta = wire::Encode(wire::Serve{.incarnation = serve.incarnations.at(index),
                                                    .ps_epoch = serve.ps_epoch,
                                                    .may_push = serve.may_push,
                                                    .floor = serve.floor,
                                                    .covered = serve.covered.ToJson(),
                                                    .released = serve.released.at(index)});
  EDL_RETURN_IF_ERROR(AskLanes(wire::MessageType::kServe, meta, kTimeout).status());
  known_.serve_told = number;
  return Ok();
}

Result<job::ServerView> ServerWatch::AskState(uint64_t incarnation, Duration timeout) {
  EDL_ASSIGN_OR_RETURN(const std::vector<std::string> answers,
                       AskLanes(wire::MessageType::kState, {}, timeout));
  job::ServerView view{.index = index_, .incarnation = incarnation};
  uint64_t pulled = 0;
  uint64_t pushed = 0;
  for (const std::string& answer : answers) {
    wire::StateAnswer state;
    EDL_RETURN_IF_ERROR(wire::Decode(Bytes(answer), state));
    view.ps_epoch = state.ps_epoch;
    view.rows += static_cast<int64_t>(state.rows);
    view.bytes += static_cast<int64_t>(state.bytes);
    view.evicted += static_cast<int64_t>(state.evicted);
    view.opens_waiting += static_cast<int64_t>(state.opens_waiting);
    view.leaving = view.leaving || state.leaving;
    pulled += state.rows_pulled;
    pushed += state.rows_pushed;
  }
  const double seconds = std::chrono::duration<double>(clock_.Now() - known_.at).count();
  if (seconds > 0) {
    view.rows_pulled_per_s = static_cast<double>(pulled - known_.rows_pulled) / seconds;
    view.rows_pushed_per_s = static_cast<double>(pushed - known_.rows_pushed) / seconds;
  }
  known_.rows_pulled = pulled;
  known_.rows_pushed = pushed;
  known_.at = clock_.Now();
  return view;
}

Status ServerWatch::ConnectLanes(const wire::Welcome& welcome) {
  const bool all_connected = std::ranges::all_of(
      lanes_, [](const std::unique_ptr<Link>& lane) { return lane->connected(); });
  if (lanes_incarnation_ == welcome.incarnation && lanes_.size() == welcome.lanes &&
      all_connected) {
    return Ok();
  }
  lanes_.clear();
  EDL_ASSIGN_OR_RETURN(const LinkOptions to, link_to_(index_));
  for (const LinkOptions& lane : ps_client::LanesOf(to, welcome)) {
    auto link = std::make_unique<Link>(lane);
    EDL_RETURN_IF_ERROR(link->Connect(kDial));
    lanes_.push_back(std::move(link));
  }
  lanes_incarnation_ = welcome.incarnation;
  return Ok();
}

Result<std::vector<std::string>> ServerWatch::AskLanes(wire::MessageType type,
                                                       const std::string& meta, Duration timeout) {
  std::vector<Link*> links;
  std::vector<Request> requests(lanes_.size());
  for (size_t i = 0; i < lanes_.size(); ++i) {
    requests[i].type = type;
    requests[i].meta = meta;
    lanes_[i]->Send(requests[i]);
    links.push_back(lanes_[i].get());
  }
  EDL_RETURN_IF_ERROR(Finish(links, requests, timeout, clock_, stop_));
  std::vector<std::string> answers;
  for (Request& request : requests) {
    // The life that is meant, or nothing of it counts.
    if (request.incarnation != lanes_incarnation_) {
      return Aborted("parameter server {} was started anew meanwhile", index_);
    }
    answers.push_back(std::move(request.answer));
  }
  return answers;
}

}  // namespace edl::ps_control
