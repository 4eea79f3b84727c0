#include "ps_control/watch_channel.h"

#include <algorithm>
#include <utility>

#include <poll.h>

#include "base/text.h"

namespace edl::ps_control {
namespace {

using ps_client::LaneAnswer;
using ps_client::Link;
using ps_client::LinkOptions;
using ps_client::LinkRequest;

constexpr std::chrono::seconds kConnectTimeout{1};
constexpr int kPollMs = 100;

int64_t Milliseconds(Duration time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}

}  // namespace

WatchChannel::WatchChannel(LinkTo link_to, Post post, const Clock& clock)
    : link_to_(std::move(link_to)), post_(std::move(post)), clock_(clock) {}

void WatchChannel::Hello(int server, Duration timeout, OnWelcome done) {
  thread_.Run([this, server, timeout, done = std::move(done)] {
    post_([done, welcome = SendHello(server, timeout)] { done(welcome); });
  });
}

void WatchChannel::Ask(wire::MessageType type, std::vector<ServerMessage> messages,
                       std::optional<Duration> timeout, OnAnswers done) {
  thread_.Run([this, type, message = std::move(messages.at(0)), timeout = timeout.value(),
               done = std::move(done)] {
    Result<std::vector<LaneAnswer>> answers = AskLanes(type, message, timeout);
    if (!answers.ok()) lanes_.clear();
    post_([done, answers = std::move(answers)] { done(answers); });
  });
}

void WatchChannel::Reset() {
  thread_.Run([this] {
    control_link_.reset();
    lanes_.clear();
  });
}

Result<wire::Welcome> WatchChannel::SendHello(int server, Duration timeout) {
  EDL_ASSIGN_OR_RETURN(LinkOptions to, link_to_(server));
  to.lanes_in_job = 0;
  // A slot may get another address.
  if (control_link_ != nullptr &&
      (control_link_->options().host != to.host || control_link_->options().port != to.port)) {
    control_link_.reset();
  }
  if (hellos_ >= kMostHellos) control_link_.reset();
  Result<wire::Welcome> welcome = Unavailable("not connected to parameter server {}", server);
  if (control_link_ != nullptr) welcome = SendHelloOnKeptConnection(timeout);
  // A kept connection may have been closed since. That says nothing about the server.
  if (!welcome.ok() && welcome.status().code() != Code::kDeadlineExceeded) {
    welcome = SendHelloOnNewConnection(to, timeout);
  }
  if (!welcome.ok()) {
    control_link_.reset();
    lanes_.clear();
  }
  return welcome;
}

Result<wire::Welcome> WatchChannel::SendHelloOnKeptConnection(Duration timeout) {
  const LinkOptions& to = control_link_->options();
  std::vector<LinkRequest> requests(1);
  requests[0].type = wire::MessageType::kHello;
  requests[0].meta = wire::Encode(wire::Hello{.token = to.token, .caller = to.caller});
  control_link_->Send(requests[0]);
  ++hellos_;
  EDL_RETURN_IF_ERROR(Finish({control_link_.get()}, requests, timeout));
  wire::Welcome welcome;
  EDL_RETURN_IF_ERROR(wire::Decode(AsBytes(requests[0].answer), welcome));
  return welcome;
}

Result<wire::Welcome> WatchChannel::SendHelloOnNewConnection(const LinkOptions& to,
                                                             Duration timeout) {
  control_link_ = std::make_unique<Link>(to);
  hellos_ = 1;
  EDL_RETURN_IF_ERROR(control_link_->Connect(kConnectTimeout));
  // Every connection begins with a Hello.
  const Time begin = clock_.Now();
  while (true) {
    EDL_RETURN_IF_ERROR(control_link_->Pump());
    if (control_link_->idle()) return control_link_->welcome();
    if (stop_) return Cancelled("the controller of parameter servers is shutting down");
    if (clock_.Now() - begin > timeout) {
      return DeadlineExceeded("{}:{} did not answer Hello within {} ms", to.host, to.port,
                              Milliseconds(timeout));
    }
    pollfd waiting{.fd = control_link_->fd(), .events = control_link_->events(), .revents = 0};
    poll(&waiting, 1, kPollMs);
    control_link_->OnReady();
  }
}

Status WatchChannel::ConnectLanes(const ServerMessage& message) {
  const bool all_connected = std::ranges::all_of(
      lanes_, [](const std::unique_ptr<Link>& lane) { return lane->connected(); });
  if (lanes_incarnation_ == message.welcome.incarnation && lanes_.size() == message.welcome.lanes &&
      all_connected) {
    return Ok();
  }
  lanes_.clear();
  EDL_ASSIGN_OR_RETURN(const LinkOptions to, link_to_(message.server));
  for (const LinkOptions& lane : ps_client::LanesOf(to, message.welcome)) {
    auto link = std::make_unique<Link>(lane);
    EDL_RETURN_IF_ERROR(link->Connect(kConnectTimeout));
    lanes_.push_back(std::move(link));
  }
  lanes_incarnation_ = message.welcome.incarnation;
  return Ok();
}

Result<std::vector<LaneAnswer>> WatchChannel::AskLanes(wire::MessageType type,
                                                       const ServerMessage& message,
                                                       Duration timeout) {
  EDL_RETURN_IF_ERROR(ConnectLanes(message));
  std::vector<Link*> links;
  std::vector<LinkRequest> requests(lanes_.size());
  for (size_t i = 0; i < lanes_.size(); ++i) {
    requests[i].type = type;
    requests[i].meta = message.metas.at(i);
    lanes_[i]->Send(requests[i]);
    links.push_back(lanes_[i].get());
  }
  EDL_RETURN_IF_ERROR(Finish(links, requests, timeout));
  std::vector<LaneAnswer> answers;
  answers.reserve(requests.size());
  for (LinkRequest& request : requests) {
    answers.push_back({std::move(request.answer), request.incarnation});
  }
  return answers;
}

Status WatchChannel::Finish(const std::vector<Link*>& links, std::vector<LinkRequest>& requests,
                            Duration timeout) {
  const Time begin = clock_.Now();
  const auto drive = [&]() -> Status {
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
      if (stop_) return Cancelled("the controller of parameter servers is shutting down");
      if (clock_.Now() - begin > timeout) {
        return DeadlineExceeded("{} of {} lanes did not answer within {} ms", waiting.size(),
                                links.size(), Milliseconds(timeout));
      }
      poll(waiting.data(), waiting.size(), kPollMs);
      for (Link* const link : woken) link->OnReady();
    }
  };
  Status driven = drive();
  if (!driven.ok()) {
    for (Link* const link : links) link->GiveUp(driven);
    return driven;
  }
  for (LinkRequest& request : requests) {
    if (!request.status.ok()) return request.status;
  }
  return Ok();
}

}  // namespace edl::ps_control
