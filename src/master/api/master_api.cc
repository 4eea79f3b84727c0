#include "master/api/master_api.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "job/names.h"

namespace edl::master {

Session* MasterApi::OnCallOf(Incarnation incarnation) {
  Session* session = context_.sessions.Find(incarnation);
  if (session == nullptr) return nullptr;
  gaps_.Add(context_.now - session->heard_at, context_.now);
  session->heard_at = context_.now;
  return session;
}

void MasterApi::OnLoaded() {
  for (const auto& [incarnation, session] : context_.sessions.all()) {
    const bool external = context_.spec.external_replicas;
    if (external) context_.keeper.OnJoined(session.replica);
    if (session.compat_api) continue;
    silence_checks_.Set(incarnation, context_.now + (external ? kRejoinAfterRestart : kSilence));
  }
}

std::chrono::milliseconds MasterApi::HeartbeatInterval() const {
  const size_t sessions = context_.sessions.all().size();
  return std::clamp(kHeartbeat * static_cast<int64_t>(1 + sessions / kHeartbeatsPerSecond),
                    kHeartbeat, kLongestHeartbeat);
}

Result<ReplicaRef> MasterApi::ReplicaOf(Incarnation incarnation) const {
  const Session* session = context_.sessions.Find(incarnation);
  if (session == nullptr) return UnknownIncarnation(incarnation);
  return session->replica;
}

Status MasterApi::UnknownIncarnation(Incarnation incarnation) {
  return Aborted("incarnation {} has no session at the master (any more): join again", incarnation);
}

void MasterApi::Join(const JoinRequest& request, const Reply<JoinReply>& reply) {
  Session* session = request.incarnation.value() == 0 ? nullptr : OnCallOf(request.incarnation);
  if (session != nullptr && session->replica != request.replica) {
    context_.outbox.Send<JoinReply>(
        reply, Aborted("incarnation {} is not a process of {} {}: join again", request.incarnation,
                       job::NameOf(request.replica.role), request.replica.id));
    return;
  }
  std::vector<LeaseId> held;
  if (session == nullptr) {
    const ReplicaKeeper::Replica* replica = context_.keeper.Find(request.replica);
    if (context_.keeper.HasEnded(request.replica)) {
      context_.outbox.Send<JoinReply>(
          reply,
          FailedPrecondition("{} cannot join, because the master has recorded its end: {}",
                             context_.spec.ReplicaName(request.replica.role, request.replica.id),
                             replica == nullptr ? "long ago" : replica->row.reason));
      return;
    }
    session = &context_.sessions.Open(request.replica, request.process, context_.now);
    context_.keeper.OnJoined(request.replica);
    silence_checks_.Set(session->incarnation, context_.now + kSilence);
  } else {
    std::set<LeaseId> listed(request.held.begin(), request.held.end());
    // Also the leases of answers that the caller has not received: it repeats those calls.
    for (const auto& [number, stored] : session->answers) {
      listed.insert(stored.leases.begin(), stored.leases.end());
    }
    held = context_.dispatcher.KeepOnly(session->incarnation, listed, context_.now);
  }
  context_.keeper.troubled().Clear(request.replica);
  session->disconnected_at = context_.now;
  context_.outbox.Send<JoinReply>(reply, JoinReply{session->incarnation, std::move(held)});
}

void MasterApi::Leave(Incarnation incarnation, const Reply<Done>& reply) {
  if (context_.sessions.Find(incarnation) != nullptr) CloseSession(context_, incarnation);
  context_.outbox.Send<Done>(reply, Done{});
}

void MasterApi::Heartbeat(Incarnation incarnation, const Reply<Done>& reply) {
  if (OnCallOf(incarnation) == nullptr) {
    context_.outbox.Send<Done>(reply, UnknownIncarnation(incarnation));
    return;
  }
  context_.outbox.Send<Done>(reply, Done{});
}

void MasterApi::AnswerAgain(const StoredAnswer& stored, const Reply<ReportAndLeaseReply>& reply) {
  ReportAndLeaseReply again{.answer = stored.answer,
                            .verdicts = stored.verdicts,
                            .ps_epoch = context_.dispatcher.ps_epoch()};
  for (const LeaseId lease : stored.leases) {
    if (auto shard = context_.dispatcher.Describe(lease)) again.shards.push_back(std::move(*shard));
  }
  // All leases have been taken back since, for example by a reset of the dataset.
  if (stored.answer == LeaseAnswer::kShards && again.shards.empty())
    again.answer = LeaseAnswer::kWait;
  context_.outbox.Send<ReportAndLeaseReply>(reply, std::move(again));
}

void MasterApi::ReportAndLease(const ReportAndLeaseRequest& request,
                               Reply<ReportAndLeaseReply> reply) {
  if (context_.model.enabled()) {
    // The newest one when the answer is sent, also in an answer that is sent again.
    reply = [this, reply = std::move(reply)](Result<ReportAndLeaseReply> answer) {
      if (answer.ok()) answer->next_dataset = context_.model.next_dataset();
      reply(std::move(answer));
    };
  }
  Session* session = OnCallOf(request.incarnation);
  if (session == nullptr) {
    context_.outbox.Send<ReportAndLeaseReply>(reply, UnknownIncarnation(request.incarnation));
    return;
  }
  for (const ShardReport& report : request.reports) {
    if (report.result.size() <= Dispatcher::kLargestResult) continue;
    context_.outbox.Send<ReportAndLeaseReply>(
        reply, InvalidArgument("the result of lease {} has {} bytes; at most {} are allowed",
                               report.lease, report.result.size(), Dispatcher::kLargestResult));
    return;
  }
  context_.keeper.troubled().Clear(session->replica);
  context_.sessions.Received(*session, request.received);
  if (request.number <= session->received) {
    context_.outbox.Send<ReportAndLeaseReply>(
        reply, InvalidArgument("call {} of incarnation {} was sent after the caller confirmed "
                               "its answer",
                               request.number, request.incarnation));
    return;
  }
  std::vector<ReportVerdict> verdicts;
  auto stored = session->answers.find(request.number);
  if (stored != session->answers.end()) {
    if (stored->second.complete) {
      AnswerAgain(stored->second, reply);
      return;
    }
    verdicts = stored->second.verdicts;
  } else {
    for (const ShardReport& report : request.reports) {
      verdicts.push_back(context_.dispatcher.Report(*session, report, context_.now));
    }
    context_.model.Update(context_.now);
    // A caller that has to open a shard again does that first, so this call does not wait.
    const bool reopens = std::ranges::find(verdicts, ReportVerdict::kReopen) != verdicts.end();
    const bool complete = request.lease_at_most == 0 || reopens;
    const LeaseAnswer answer =
        request.lease_at_most == 0 ? LeaseAnswer::kNothing : LeaseAnswer::kWait;
    if (complete || !verdicts.empty()) {
      context_.sessions.StoreAnswer(*session, request.number,
                                    {.complete = complete,
                                     .answer = complete ? answer : LeaseAnswer::kNothing,
                                     .verdicts = verdicts});
    }
    if (complete) {
      context_.outbox.Send<ReportAndLeaseReply>(
          reply, ReportAndLeaseReply{.answer = answer,
                                     .verdicts = std::move(verdicts),
                                     .ps_epoch = context_.dispatcher.ps_epoch()});
      return;
    }
  }
  if (session->replica.role == job::Role::kPs) {
    // The ps runs the workers' program. What it trains would not be part of the model.
    context_.keeper.NotePsAskedForData(session->replica);
    context_.outbox.Send<ReportAndLeaseReply>(
        reply,
        ReportAndLeaseReply{.answer = LeaseAnswer::kFinished, .verdicts = std::move(verdicts)});
    return;
  }
  RequestShards(request, std::move(verdicts), std::move(reply));
}

void MasterApi::RequestShards(const ReportAndLeaseRequest& request,
                              std::vector<ReportVerdict> verdicts,
                              Reply<ReportAndLeaseReply> reply) {
  if (Status leases = CheckLeasesShards(context_.spec); !leases.ok()) {
    context_.outbox.Send<ReportAndLeaseReply>(reply, std::move(leases));
    return;
  }
  auto answer = [this, incarnation = request.incarnation, number = request.number,
                 verdicts = std::move(verdicts),
                 reply = std::move(reply)](LeaseAnswer answer, std::vector<LeasedShard> shards) {
    Session* session = context_.sessions.Find(incarnation);
    // Wait is stored too: a late copy of the call must not lease shards for a caller that has moved
    // on. Retry is not stored, because the caller repeats the call.
    if (session != nullptr && answer != LeaseAnswer::kRetry) {
      StoredAnswer stored{.complete = true, .answer = answer, .verdicts = verdicts};
      for (const LeasedShard& shard : shards) stored.leases.push_back(shard.lease);
      context_.sessions.StoreAnswer(*session, number, std::move(stored));
    }
    context_.outbox.Send<ReportAndLeaseReply>(
        reply, ReportAndLeaseReply{.answer = answer,
                                   .shards = std::move(shards),
                                   .verdicts = verdicts,
                                   .ps_epoch = context_.dispatcher.ps_epoch()});
  };
  if (context_.dispatcher.ReplaceWaiter(request.incarnation, request.number, request.call,
                                        answer)) {
    return;
  }
  context_.dispatcher.RequestShards(
      Waiter{.call = request.call,
             .session = request.incarnation,
             .number = request.number,
             .dataset = request.dataset,
             .at_most = std::clamp<uint32_t>(request.lease_at_most, 1, kMostShardsPerCall),
             .deadline = context_.now + request.wait,
             .reply = answer},
      IfUnknown::kAnswer, context_.now);
}

Status MasterApi::Watch(Incarnation incarnation, uint64_t stream,
                        std::function<void(const Membership&)> push) {
  Session* session = OnCallOf(incarnation);
  if (session == nullptr) return UnknownIncarnation(incarnation);
  session->connected = true;
  session->stream_was_open = true;
  push(*ForWatchers());
  streams_[incarnation] = {stream, std::move(push)};
  return Ok();
}

void MasterApi::Unwatch(Incarnation incarnation, uint64_t stream) {
  auto found = streams_.find(incarnation);
  if (found == streams_.end() || found->second.id != stream) return;
  streams_.erase(found);
  if (Session* session = context_.sessions.Find(incarnation)) {
    session->connected = false;
    session->disconnected_at = context_.now;
    Time next = context_.now;
    (void)WhyLost(*session, next);
    silence_checks_.SetAtLatest(incarnation, next);
  }
}

void MasterApi::Arrive(Incarnation incarnation, const std::string& name,
                       std::chrono::milliseconds wait, const Reply<bool>& reply) {
  Session* session = OnCallOf(incarnation);
  if (session == nullptr) {
    context_.outbox.Send<bool>(reply, UnknownIncarnation(incarnation));
    return;
  }
  context_.sync.Arrive(
      name, session->replica,
      context_.sync.HasBarrier(name) ? std::vector<ReplicaRef>()
                                     : context_.keeper.Running(session->replica.role),
      context_.now + wait, [this, reply](bool ready) { context_.outbox.Send<bool>(reply, ready); });
}

void MasterApi::ReportProgress(Incarnation incarnation, std::optional<uint64_t> batches,
                               uint64_t ahead, std::chrono::milliseconds wait,
                               const Reply<bool>& reply) {
  if (OnCallOf(incarnation) == nullptr) {
    context_.outbox.Send<bool>(reply, UnknownIncarnation(incarnation));
    return;
  }
  if (!batches.has_value()) {
    context_.staleness.Leave(incarnation);
    context_.outbox.Send<bool>(reply, true);
    return;
  }
  context_.staleness.Await(incarnation, *batches, ahead, context_.now + wait,
                           [this, reply](bool ready) { context_.outbox.Send<bool>(reply, ready); });
}

void MasterApi::AwaitEvent(const std::string& name, std::chrono::milliseconds wait,
                           const Reply<bool>& reply) {
  context_.sync.AwaitEvent(name, context_.now + wait,
                           [this, reply](bool ready) { context_.outbox.Send<bool>(reply, ready); });
}

void MasterApi::AcquireLock(Incarnation incarnation, const std::string& name,
                            std::chrono::milliseconds wait, const Reply<bool>& reply) {
  if (OnCallOf(incarnation) == nullptr) {
    context_.outbox.Send<bool>(reply, UnknownIncarnation(incarnation));
    return;
  }
  context_.sync.Acquire(name, incarnation, context_.now + wait, [this, reply](bool acquired) {
    context_.outbox.Send<bool>(reply, acquired);
  });
}

void MasterApi::ReleaseLock(Incarnation incarnation, const std::string& name,
                            const Reply<bool>& reply) {
  if (OnCallOf(incarnation) == nullptr) {
    context_.outbox.Send<bool>(reply, UnknownIncarnation(incarnation));
    return;
  }
  context_.outbox.Send<bool>(reply, context_.sync.Release(name, incarnation));
}

std::optional<std::string> MasterApi::WhyLost(const Session& session, Time& next) const {
  const bool must_rejoin =
      context_.spec.external_replicas && session.from_ledger && !session.stream_was_open;
  const Duration limit = must_rejoin
                             ? Duration(kRejoinAfterRestart)
                             : std::clamp<Duration>(3 * gaps_.Usual(), kSilence, kLongestSilence);
  next = session.heard_at + limit;
  if (context_.now > next) {
    return fmt::format("was silent for {} s",
                       std::chrono::duration_cast<std::chrono::seconds>(limit).count());
  }
  if (session.connected || !session.stream_was_open) return std::nullopt;
  // A call after the end of the stream means that the process runs and reconnects. If the session
  // was silent before its connection broke, its machine is lost, so there is little to wait for.
  constexpr std::chrono::milliseconds kSilentBefore{2000};
  constexpr std::chrono::milliseconds kRejoinAfterSilence{250};
  const bool vanished = session.disconnected_at - session.heard_at >= kSilentBefore;
  const Time rejoin = std::max(session.heard_at, session.disconnected_at) +
                      (vanished ? kRejoinAfterSilence : kRejoin);
  if (context_.now > rejoin) return "lost its connection";
  next = std::min(next, rejoin);
  return std::nullopt;
}

void MasterApi::Lose(const Session& session, const std::string& why) {
  const Incarnation incarnation = session.incarnation;
  const bool silent = session.connected || !session.stream_was_open;
  const ReplicaRef replica = session.replica;
  LOG_WARNING("{} {} (incarnation {}) {}: its {} lease(s) go to others", job::NameOf(replica.role),
              replica.id, incarnation, why, context_.dispatcher.LeasesOf(replica));
  context_.dispatcher.ForgiveRoundsOf(incarnation);
  context_.keeper.OnSilent(replica);
  CloseSession(context_, incarnation);
  streams_.erase(incarnation);
  // A process that lost its connection has ended, which the backend reports, or joins again.
  if (silent && context_.sessions.Of(replica).empty()) {
    context_.keeper.troubled().Add(replica, why + "; its shards went to others", context_.now);
  }
}

void MasterApi::Tick() {
  size_t lost = 0;
  while (lost < kMostLossesATick) {
    const std::optional<Incarnation> incarnation = silence_checks_.TakeDue(context_.now);
    if (!incarnation) return;
    const Session* session = context_.sessions.Find(*incarnation);
    if (session == nullptr) continue;
    Time next;
    if (const std::optional<std::string> why = WhyLost(*session, next)) {
      Lose(*session, *why);
      ++lost;
    } else {
      silence_checks_.Set(*incarnation,
                          std::max(next, context_.now + std::chrono::milliseconds(1)));
    }
  }
}

Membership MasterApi::CurrentMembership() const {
  Membership membership{.number = context_.keeper.membership_number()};
  for (const auto& [name, replica] : context_.keeper.replicas()) {
    if (replica.row.state != job::ReplicaState::kRunning) continue;
    membership.members.push_back(
        {replica.row.replica.role, replica.row.index, replica.row.replica.id});
  }
  membership.count = static_cast<int64_t>(membership.members.size());
  return membership;
}

std::shared_ptr<const Membership> MasterApi::ForWatchers() {
  if (newest_ == nullptr || newest_->number != context_.keeper.membership_number()) {
    auto membership = std::make_shared<Membership>(CurrentMembership());
    if (membership->members.size() > Membership::kMostListed) membership->members = {};
    newest_ = std::move(membership);
  }
  return newest_;
}

void MasterApi::PushMembership() {
  if (pushed_ != context_.keeper.membership_number()) {
    pushed_ = context_.keeper.membership_number();
    next_push_ = {};
  }
  auto stream = streams_.lower_bound(next_push_);
  if (stream == streams_.end()) return;
  const std::shared_ptr<const Membership> membership = ForWatchers();
  for (size_t pushed = 0; stream != streams_.end() && pushed < kPushesAtOnce; ++pushed, ++stream) {
    context_.outbox.Add([push = stream->second.push, membership] { push(*membership); });
    next_push_ = Incarnation(stream->first.value() + 1);
  }
}

}  // namespace edl::master
