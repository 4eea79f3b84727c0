#include "ps_control/server_watch.h"

#include <utility>

#include "base/log.h"
#include "base/text.h"

namespace edl::ps_control {

using ps_client::LaneAnswer;

Status CheckIdentity(const wire::Welcome& welcome, int server, int servers) {
  if (welcome.index == static_cast<uint32_t>(server) &&
      welcome.servers == static_cast<uint32_t>(servers)) {
    return Ok();
  }
  return Unavailable(
      "the process at the address of parameter server {} of {} says that it is server {} of {}",
      server, servers, welcome.index, welcome.servers);
}

ServerWatch::ServerWatch(int index, int servers, ServerChannel& channel, Events events,
                         CallAfter call_after, const Clock& clock)
    : index_(index),
      servers_(servers),
      channel_(channel),
      events_(std::move(events)),
      call_after_(std::move(call_after)),
      clock_(clock) {}

void ServerWatch::Probe(master::PsCommandId number) {
  probes_.push_back(number);
  RoundNow();
}

void ServerWatch::Serve(std::shared_ptr<const master::ServeAll> serve, uint64_t number) {
  serve_ = std::move(serve);
  serve_number_ = number;
  RoundNow();
}

void ServerWatch::RoundNow() {
  if (in_round_) {
    round_wanted_ = true;
  } else {
    Round();
  }
}

void ServerWatch::Round() {
  in_round_ = true;
  round_wanted_ = false;
  progressed_ = false;
  round_probes_ = std::exchange(probes_, {});
  round_serve_ = serve_;
  round_serve_number_ = serve_number_;
  // A probe asks who has the address now. A kept connection may lead to a process that was replaced
  // and still answers.
  if (!round_probes_.empty()) channel_.Reset();
  channel_.Hello(index_, kTimeout,
                 [this](const Result<wire::Welcome>& welcome) { OnWelcome(welcome); });
}

void ServerWatch::EndRound() {
  in_round_ = false;
  events_.round(progressed_);
  if (round_wanted_) {
    Round();
    return;
  }
  call_after_(kRoundInterval, [this, timer = ++timer_] {
    if (timer == timer_ && !in_round_) Round();
  });
}

void ServerWatch::OnWelcome(const Result<wire::Welcome>& welcome) {
  const Status identified =
      welcome.ok() ? CheckIdentity(*welcome, index_, servers_) : welcome.status();
  for (const master::PsCommandId probe : std::exchange(round_probes_, {})) {
    if (identified.ok()) {
      events_.probed(probe, master::ProbeReply{welcome->incarnation, welcome->lanes});
    } else {
      events_.probed(probe, identified);
    }
  }
  if (!identified.ok()) {
    EndRound();
    return;
  }
  progressed_ =
      welcome->incarnation != progress_incarnation_ || welcome->progress_bytes != progress_bytes_;
  progress_incarnation_ = welcome->incarnation;
  progress_bytes_ = welcome->progress_bytes;
  events_.alive(index_, welcome->incarnation);
  if (round_serve_ != nullptr &&
      round_serve_->incarnations.at(static_cast<size_t>(index_)) != welcome->incarnation) {
    // Another incarnation gets no messages before the master has decided about it.
    events_.state({.index = index_, .incarnation = welcome->incarnation});
    channel_.Reset();
    EndRound();
    return;
  }
  if (known_.incarnation != welcome->incarnation) {
    known_ = {.incarnation = welcome->incarnation, .at = clock_.Now()};
  }
  if (round_serve_ != nullptr && known_.serve_number != round_serve_number_) {
    SendServe(*welcome);
  } else {
    AskState(*welcome);
  }
}

void ServerWatch::SendServe(const wire::Welcome& welcome) {
  const auto index = static_cast<size_t>(index_);
  const std::string meta =
      wire::Encode(wire::Serve{.incarnation = round_serve_->incarnations.at(index),
                               .ps_epoch = round_serve_->ps_epoch,
                               .may_push = round_serve_->may_push,
                               .floor = round_serve_->floor,
                               .covered = round_serve_->covered.ToJson(),
                               .released = round_serve_->released.at(index)});
  AskLanes(welcome, wire::MessageType::kServe, meta, kTimeout,
           [this, welcome](const std::vector<LaneAnswer>&) {
             known_.serve_number = round_serve_number_;
             AskState(welcome);
           });
}

void ServerWatch::AskState(const wire::Welcome& welcome) {
  AskLanes(welcome, wire::MessageType::kState, {},
           round_serve_ == nullptr ? kStateTimeoutBeforeServe : kTimeout,
           [this](const std::vector<LaneAnswer>& answers) {
             const Result<job::ServerView> view = Combine(answers);
             if (view.ok()) {
               events_.state(*view);
             } else {
               LOG_DEBUG("parameter server {}: {}", index_, view.status().message());
             }
             EndRound();
           });
}

Result<job::ServerView> ServerWatch::Combine(const std::vector<LaneAnswer>& answers) {
  job::ServerView view{.index = index_, .incarnation = known_.incarnation};
  uint64_t pulled = 0;
  uint64_t pushed = 0;
  for (const LaneAnswer& answer : answers) {
    wire::StateAnswer state;
    EDL_RETURN_IF_ERROR(wire::Decode(AsBytes(answer.meta), state));
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

void ServerWatch::AskLanes(const wire::Welcome& welcome, wire::MessageType type,
                           const std::string& meta, Duration timeout, OnAnswers done) {
  std::vector<ServerMessage> messages = {{.server = index_,
                                          .welcome = welcome,
                                          .metas = std::vector<std::string>(welcome.lanes, meta)}};
  channel_.Ask(type, std::move(messages), timeout,
               [this, incarnation = welcome.incarnation,
                done = std::move(done)](const Result<std::vector<LaneAnswer>>& answers) {
                 Status status = answers.status();
                 for (size_t i = 0; status.ok() && i < answers->size(); ++i) {
                   if ((*answers)[i].incarnation == incarnation) continue;
                   status = Aborted("parameter server {} was restarted before it answered", index_);
                 }
                 if (status.ok()) {
                   done(*answers);
                   return;
                 }
                 LOG_DEBUG("parameter server {}: {}", index_, status.message());
                 EndRound();
               });
}

}  // namespace edl::ps_control
