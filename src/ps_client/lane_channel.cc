#include "ps_client/lane_channel.h"

#include <algorithm>
#include <utility>

#include "base/backoff.h"
#include "base/log.h"
#include "base/retry.h"

namespace edl::ps_client {
namespace {

// For a TCP connection to be established.
constexpr Duration kDialLimit = std::chrono::seconds(3);
// For an answer through shared memory, after the server has answered over TCP.
constexpr Duration kUpgradeLimit = std::chrono::seconds(1);
// After this many successful checks in a row, the new connection replaces the silent one.
constexpr int kMostChecks = 3;
// The timeout of Hello doubles with each attempt, up to this.
constexpr Duration kLongestHello = std::chrono::seconds(60);
// Between attempts; the second attempt follows immediately.
constexpr BackoffLimits kRetry{.first = std::chrono::milliseconds(50),
                               .longest = std::chrono::milliseconds(1600)};

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

// A sum that does not overflow: a timeout may be practically infinite.
Time After(Time time, Duration duration) {
  return duration > Time::max() - time ? Time::max() : time + duration;
}

}  // namespace

LaneChannel::LaneChannel(ChannelOptions options, size_t lane, const ReadySet& set,
                         const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      link_(options_.link),
      link_watch_(set, lane),
      attempt_watch_(set, lane),
      random_(std::random_device()()) {
  options_.silence = std::min(options_.silence, options_.timeout);
}

std::string LaneChannel::Name() const {
  return fmt::format("lane {} of server {}:{}", to().lane_in_server, to().host, to().port);
}

void LaneChannel::Send(LinkRequest& request) {
  const Time now = clock_.Now();
  if (link_.idle()) heard_at_ = progress_at_ = now;
  link_.Send(request);
  next_move_ = now;
}

void LaneChannel::Drop(Duration pause, const Status& why) {
  EndAttempt();
  link_watch_.Clear();
  link_.Lose();
  last_failure_ = why;
  next_attempt_ = clock_.Now() + pause;
  next_move_ = std::min(next_move_, next_attempt_);
}

void LaneChannel::OnReady() {
  if (link_.connected()) link_.OnReady();
  if (attempt_ != nullptr) attempt_->OnReady();
}

void LaneChannel::Move() {
  const Time now = clock_.Now();
  if (const Status status = Step(now); !status.ok()) OnFailure(status, now);
  NoteProgress(now);
  CheckTimeout(now);
  Plan(now);
}

Status LaneChannel::Step(Time now) {
  if (!link_.connected()) {
    if (link_.idle()) {
      EndAttempt();
      greeted_.reset();
      return Ok();
    }
    if (attempt_ == nullptr) {
      if (now < next_attempt_) return Ok();
      EDL_RETURN_IF_ERROR(
          StartAttempt(Purpose::kConnect, options_.transport == Transport::kSharedMemory, now));
    }
    EDL_RETURN_IF_ERROR(MoveAttempt(now));
    if (!link_.connected()) return Ok();
  }
  EDL_RETURN_IF_ERROR(link_.Pump());
  NoteProgress(now);
  if (link_.idle()) {
    if (attempt_ != nullptr) EndAttempt();
    return Ok();
  }
  if (attempt_ == nullptr && now - heard_at_ >= options_.silence) {
    EDL_RETURN_IF_ERROR(StartAttempt(Purpose::kCheck, is_ring_, now));
  }
  return attempt_ == nullptr ? Ok() : MoveAttempt(now);
}

Status LaneChannel::StartAttempt(Purpose purpose, bool ring, Time now) {
  LinkOptions to = options_.link;
  to.shared_memory = ring;
  purpose_ = purpose;
  EDL_ASSIGN_OR_RETURN(attempt_, Attempt::Start(to, attempts_++, now));
  return Ok();
}

Duration LaneChannel::AttemptLimit() const {
  if (!attempt_->dialled()) return kDialLimit;
  if (purpose_ == Purpose::kUpgrade) return kUpgradeLimit;
  const BackoffLimits limits{
      .first = options_.silence,
      .longest = std::min(options_.silence * 8, std::max(options_.silence, kLongestHello))};
  return limits.After(failures_ + 1);
}

Status LaneChannel::MoveAttempt(Time now) {
  // While it connects, the attempt may close the descriptor that is watched.
  if (!attempt_->dialled()) attempt_watch_.Clear();
  Result<bool> welcomed = attempt_->Move();
  if (welcomed.ok() && !*welcomed && now - attempt_->since() >= AttemptLimit()) {
    welcomed = DeadlineExceeded("no answer to {} for {:.1f} s",
                                attempt_->dialled() ? "Hello" : "a connection",
                                Seconds(now - attempt_->since()));
  }
  if (welcomed.ok()) return *welcomed ? OnWelcome(now) : Ok();
  EndAttempt();
  if (purpose_ == Purpose::kUpgrade) {
    Use(*std::exchange(greeted_, nullptr), false, now);
    return link_.Pump();
  }
  if (purpose_ == Purpose::kCheck && IsConnectionLoss(welcomed.status())) {
    return DeadlineExceeded("no answer for {:.1f} s, and no answer on a new connection: {}",
                            Seconds(now - heard_at_), welcomed.status().message());
  }
  return welcomed.status();
}

Status LaneChannel::OnWelcome(Time now) {
  attempt_watch_.Clear();
  std::unique_ptr<Attempt> attempt = std::exchange(attempt_, nullptr);
  const job::PsIncarnation incarnation = attempt->link().welcome().incarnation;
  switch (purpose_) {
    case Purpose::kCheck:
      if (incarnation != link_.welcome().incarnation) {
        return Unavailable("another process of a parameter server answers at this address now");
      }
      heard_at_ = now;
      // A proxy in between may have lost the connection to the server, and still acknowledge what
      // it does not forward.
      if (++checks_ == kMostChecks) Use(*attempt, is_ring_, now);
      return checks_ == 0 ? link_.Pump() : Ok();
    case Purpose::kUpgrade:
      // A server on another machine may have the same port.
      if (incarnation == greeted_->link().welcome().incarnation) {
        greeted_.reset();
        Use(*attempt, true, now);
      } else {
        Use(*std::exchange(greeted_, nullptr), false, now);
      }
      return Ok();
    case Purpose::kConnect:
      break;
  }
  if (options_.incarnation != job::PsIncarnation() && incarnation != options_.incarnation) {
    options_.incarnation = incarnation;
    ++restarts_;
    return Aborted(
        "the server was restarted and lacks what this client trained: restore a checkpoint, or "
        "continue with the parameters that the servers have");
  }
  if (options_.transport == Transport::kAuto && StartAttempt(Purpose::kUpgrade, true, now).ok()) {
    greeted_ = std::move(attempt);
    return MoveAttempt(now);
  }
  Use(*attempt, attempt->link().options().shared_memory, now);
  return Ok();
}

void LaneChannel::Use(Attempt& attempt, bool is_ring, Time now) {
  link_watch_.Clear();
  link_.Adopt(attempt.link());
  is_ring_ = is_ring;
  heard_at_ = now;
  last_failure_ = Ok();
  checks_ = 0;
}

void LaneChannel::EndAttempt() {
  attempt_watch_.Clear();
  attempt_.reset();
}

void LaneChannel::OnFailure(const Status& why, Time now) {
  EndAttempt();
  greeted_.reset();
  link_watch_.Clear();
  link_.Lose();
  last_failure_ = why;
  if (!IsConnectionLoss(why)) {
    GiveUp(why);
    return;
  }
  if (!lost_since_.has_value()) {
    lost_since_ = now;
    LOG_WARNING("lost {}: {}", Name(), why.message());
  }
  // With jitter, so that the clients of a restarted server do not connect all at once.
  next_attempt_ =
      now + WithJitter(kRetry.After(failures_), std::generate_canonical<double, 32>(random_));
  ++failures_;
}

void LaneChannel::NoteProgress(Time now) {
  if (link_.traffic() != traffic_) {
    traffic_ = link_.traffic();
    heard_at_ = now;
    checks_ = 0;
  }
  if (link_.progress() == progress_) return;
  progress_ = link_.progress();
  progress_at_ = now;
  failures_ = 0;
  last_failure_ = Ok();
  if (!lost_since_.has_value()) return;
  LOG_INFO("{} answers again after {:.1f} s", Name(), Seconds(now - *lost_since_));
  lost_since_.reset();
}

void LaneChannel::CheckTimeout(Time now) {
  if (link_.idle() || now - progress_at_ < options_.timeout) return;
  const double seconds = Seconds(now - progress_at_);
  if (last_failure_.ok()) {
    GiveUp(DeadlineExceeded("no answer for {:.1f} s", seconds));
  } else {
    GiveUp(Status(last_failure_.code(),
                  fmt::format("no answer for {:.1f} s: {}", seconds, last_failure_.message())));
  }
}

void LaneChannel::GiveUp(Status why) {
  EndAttempt();
  greeted_.reset();
  link_watch_.Clear();
  link_.GiveUp(std::move(why).Within(Name()));
  next_attempt_ = Time{};
}

Status LaneChannel::Watch() {
  if (link_.connected()) EDL_RETURN_IF_ERROR(link_watch_.Set(link_.fd(), link_.events()));
  if (attempt_ == nullptr) return Ok();
  return attempt_watch_.Set(attempt_->fd(), attempt_->events());
}

void LaneChannel::Plan(Time now) {
  // If the descriptor cannot be watched, no event would ever continue the request.
  if (const Status watched = Watch(); !watched.ok()) OnFailure(watched, now);
  next_move_ = Time::max();
  if (link_.idle()) return;
  next_move_ = After(progress_at_, options_.timeout);
  if (attempt_ != nullptr) {
    next_move_ = std::min(next_move_, After(attempt_->since(), AttemptLimit()));
  } else if (link_.connected()) {
    next_move_ = std::min(next_move_, After(heard_at_, options_.silence));
  } else {
    next_move_ = std::min(next_move_, next_attempt_);
  }
}

}  // namespace edl::ps_client
