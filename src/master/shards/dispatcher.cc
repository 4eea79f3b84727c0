#include "master/shards/dispatcher.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/log.h"
#include "master/shards/permutation.h"
#include "master/shards/shard_checkpoint.h"

namespace edl::master {
namespace {

// Most records of a record shuffle in one answer, because each index is computed and sent. The
// shard that passes the limit is the last one of its answer.
constexpr size_t kMostIndicesPerAnswer = size_t{1} << 18;

}  // namespace

Status Dispatcher::Load(Counters counters, Time now) {
  counters_ = counters;
  EDL_ASSIGN_OR_RETURN(std::vector<DatasetRow> datasets, ledger_.Datasets());
  for (DatasetRow& row : datasets) {
    auto dataset = std::make_unique<Dataset>(std::move(row), ledger_);
    // A grant at the compatibility API may have died with the master's last life, and its caller
    // cannot say.
    dataset->ForgiveLeftoverRound();
    AddDataset(std::move(dataset));
  }
  EDL_ASSIGN_OR_RETURN(const std::vector<DoneRow> done, ledger_.Done());
  for (const DoneRow& row : done) FindById(row.dataset)->LoadDone(row);
  EDL_ASSIGN_OR_RETURN(const std::vector<DoneRow> restored, ledger_.Restored());
  for (const DoneRow& row : restored) FindById(row.dataset)->LoadRestored(row);
  EDL_ASSIGN_OR_RETURN(const std::vector<QuarantinedRow> aside, ledger_.Quarantined());
  for (const QuarantinedRow& row : aside) FindById(row.dataset)->LoadQuarantined(row);
  EDL_ASSIGN_OR_RETURN(const std::vector<ReturnedRow> returned, ledger_.Returned());
  for (const ReturnedRow& row : returned) FindById(row.dataset)->LoadReturned(row);
  EDL_ASSIGN_OR_RETURN(const std::vector<LeaseRow> leases, ledger_.Leases());
  for (const LeaseRow& row : leases) {
    AddLease(row, now);
    const Session* session = sessions_.Find(row.holder);
    if (session == nullptr) {
      LoseLease(row.lease, "its worker was lost", now);
    } else if (session->replica.role == job::Role::kChief) {
      chief_used_.insert(row.dataset);
    }
  }
  return Ok();
}

const Dataset* Dispatcher::Find(const std::string& name) const {
  auto found = datasets_.find(name);
  return found == datasets_.end() ? nullptr : found->second.get();
}

Dataset* Dispatcher::FindById(DatasetId id) {
  const auto found = by_id_.find(id);
  CHECK(found != by_id_.end(), "no dataset has id {}", id);
  return found->second;
}

const Dataset* Dispatcher::FindById(DatasetId id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

void Dispatcher::AddDataset(std::unique_ptr<Dataset> dataset) {
  by_id_[dataset->id()] = dataset.get();
  const std::string name = dataset->spec().name;
  datasets_[name] = std::move(dataset);
}

void Dispatcher::AddLease(const LeaseRow& row, Time now) {
  const Session* session = sessions_.Find(row.holder);
  const ReplicaRef replica = session == nullptr ? ReplicaRef{} : session->replica;
  leases_[row.lease] = Lease{.row = row, .replica = replica, .since = now, .granted_at = now};
  held_[row.holder].insert(row.lease);
  ++leases_of_[replica];
  // Only the published client reports by task number.
  if (session != nullptr && session->compat_api) tasks_[{row.dataset, row.task}] = row.lease;
  Queue& queue = QueueOf(*FindById(row.dataset));
  queue.leases.insert(row.lease);
  queue.participants.AddLease(row.holder, replica);
  hang_checks_.SetAtLatest(row.holder, now + kHangCheck);
}

Lease Dispatcher::RemoveLease(LeaseId id) {
  const auto place = leases_.find(id);
  const Lease lease = place->second;
  leases_.erase(place);
  held_[lease.row.holder].erase(id);
  if (--leases_of_[lease.replica] == 0) leases_of_.erase(lease.replica);
  tasks_.erase({lease.row.dataset, lease.row.task});
  Queue& queue = QueueOf(*FindById(lease.row.dataset));
  queue.leases.erase(id);
  queue.suspects.erase(id);
  queue.participants.RemoveLease(lease.row.holder, lease.replica);
  return lease;
}

void Dispatcher::AddWaiter(Waiter waiter) {
  const Session* session = sessions_.Find(waiter.session);
  CHECK(session != nullptr, "a call of incarnation {} waits, which is gone", waiter.session);
  Queue& queue = queues_[waiter.dataset];
  queue.participants.AddWait(waiter.session, session->replica);
  const Dataset* dataset = Find(waiter.dataset);
  if (dataset != nullptr) {
    if (session->replica.role == job::Role::kChief) chief_used_.insert(dataset->id());
    if (session->told_finished.contains(dataset->id())) queue.waiting_again.insert(waiter.session);
  }
  const uint64_t call = waiter.call;
  if (waiter.deadline) wait_deadlines_.Set(call, *waiter.deadline);
  calls_of_[waiter.session].insert(call);
  queue.waiters.push_back(std::move(waiter));
  by_call_[call] = {&queue, std::prev(queue.waiters.end())};
}

Result<const Dataset*> Dispatcher::Register(DatasetSpec spec, Time now) {
  EDL_RETURN_IF_ERROR(Dataset::Check(spec));
  auto found = datasets_.find(spec.name);
  if (found == datasets_.end()) {
    const DatasetId id(counters_.next_dataset++);
    DatasetRow row{.id = id, .spec = std::move(spec)};
    row.seed = Mix(seed_, static_cast<uint64_t>(id.value()));
    ledger_.Put(row);
    const std::string name = row.spec.name;
    AddDataset(std::make_unique<Dataset>(std::move(row), ledger_));
    found = datasets_.find(name);
    for (const Waiter& waiter : QueueOf(*found->second).waiters) {
      if (sessions_.Find(waiter.session)->replica.role == job::Role::kChief) chief_used_.insert(id);
    }
    LOG_INFO("dataset '{}': {} records, {} epochs, {} shards of {} records", name,
             found->second->spec().size, found->second->spec().epochs,
             found->second->shards_per_epoch(), found->second->records_per_shard());
    Settle(*found->second, now);
  }
  return found->second.get();
}

void Dispatcher::VoidLeases(const Dataset& dataset) {
  const std::set<LeaseId> open = QueueOf(dataset).leases;
  for (const LeaseId lease : open) RemoveLease(lease);
  for (auto& [incarnation, session] : sessions_.all()) session.told_finished.erase(dataset.id());
  QueueOf(dataset).waiting_again.clear();
}

Result<const Dataset*> Dispatcher::Reset(const std::string& name, Time now) {
  auto found = datasets_.find(name);
  if (found == datasets_.end()) return NotFound("no dataset is named '{}'", name);
  VoidLeases(*found->second);
  found->second->Reset();
  Settle(*found->second, now);
  return found->second.get();
}

Result<std::string> Dispatcher::Save(const std::string& name) const {
  const Dataset* dataset = Find(name);
  if (dataset == nullptr) return NotFound("no dataset is named '{}'", name);
  std::vector<ShardKey> leased;
  if (const auto queue = queues_.find(name); queue != queues_.end()) {
    for (const LeaseId id : queue->second.leases) leased.push_back(leases_.at(id).row.key);
  }
  return SaveShards(*dataset, std::move(leased));
}

Result<const Dataset*> Dispatcher::Restore(const std::string& content, Time now) {
  EDL_ASSIGN_OR_RETURN(ShardCheckpoint checkpoint, ParseShards(content));
  if (Find(checkpoint.spec.name) == nullptr) {
    EDL_RETURN_IF_ERROR(Register(checkpoint.spec, now).status());
  }
  Dataset& dataset = *datasets_.at(checkpoint.spec.name);
  EDL_ASSIGN_OR_RETURN(const std::vector<RangeSet::Range> remaining,
                       RemainingShards(checkpoint, dataset));
  VoidLeases(dataset);
  dataset.Restore(checkpoint.epoch, remaining, checkpoint.order);
  Settle(dataset, now);
  return &dataset;
}

void Dispatcher::Ask(Waiter waiter, bool hold_unknown, Time now) {
  auto found = datasets_.find(waiter.dataset);
  if (found == datasets_.end() && !hold_unknown) {
    waiter.reply(Answer::kUnknownDataset, {});
    return;
  }
  waiter.since = now;
  AddWaiter(std::move(waiter));
  if (found != datasets_.end()) Settle(*found->second, now);
}

bool Dispatcher::ReplaceWaiter(Incarnation session, uint64_t number, uint64_t call,
                               std::function<void(Answer, std::vector<LeasedShard>)> reply) {
  const auto calls = calls_of_.find(session);
  if (calls == calls_of_.end()) return false;
  for (const uint64_t old_call : calls->second) {
    const Place place = by_call_.at(old_call);
    if (place.waiter->number != number) continue;
    place.waiter->call = call;
    by_call_.erase(old_call);
    by_call_[call] = place;
    calls->second.erase(old_call);
    calls->second.insert(call);
    wait_deadlines_.Remove(old_call);
    if (place.waiter->deadline) wait_deadlines_.Set(call, *place.waiter->deadline);
    auto old = std::exchange(place.waiter->reply, std::move(reply));
    old(Answer::kRetry, {});
    return true;
  }
  return false;
}

bool Dispatcher::DropWaiter(uint64_t call, Time now) {
  if (!by_call_.contains(call)) return false;
  EndWait(call, now);
  return true;
}

Waiter Dispatcher::EndWait(uint64_t call, Time now) {
  const Place place = by_call_.at(call);
  Waiter ended = std::move(*place.waiter);
  Queue& queue = *place.queue;
  queue.waiters.erase(place.waiter);
  by_call_.erase(call);
  wait_deadlines_.Remove(call);
  // A session is closed after its calls have ended.
  queue.participants.RemoveWait(ended.session, sessions_.Find(ended.session)->replica);
  const auto calls = calls_of_.find(ended.session);
  calls->second.erase(call);
  if (calls->second.empty()) calls_of_.erase(calls);
  if (!queue.participants.Waits(ended.session)) queue.waiting_again.erase(ended.session);
  // Nobody has registered it, and the name may be any text.
  if (queue.waiters.empty() && Find(ended.dataset) == nullptr) queues_.erase(ended.dataset);
  if (const auto held = held_.find(ended.session); held != held_.end()) {
    for (const LeaseId lease : held->second) {
      leases_.at(lease).since += now - std::max(ended.since, leases_.at(lease).since);
    }
  }
  return ended;
}

std::optional<Dataset::Taken> Dispatcher::TakeSuspect(Dataset& dataset) {
  const std::set<LeaseId>& suspects = QueueOf(dataset).suspects;
  if (suspects.empty() || !fault_tolerant_) return std::nullopt;
  const LeaseRow row = RemoveLease(*suspects.begin()).row;
  ledger_.Delete(row.lease);
  dataset.Return({row.key, row.failures, row.counted});
  return dataset.Take({}, true);
}

int32_t Dispatcher::NextTask() {
  const int32_t task = counters_.next_task;
  counters_.next_task = task == std::numeric_limits<int32_t>::max() ? 1 : task + 1;
  return task;
}

bool Dispatcher::GrantTo(Dataset& dataset, Waiter& waiter, Time now) {
  Session* session = sessions_.Find(waiter.session);
  CHECK(session != nullptr, "a call of incarnation {} waits, which is gone", waiter.session);
  std::vector<LeasedShard> granted;
  std::optional<bool> others;
  size_t indices = 0;
  while (granted.size() < waiter.at_most && indices < kMostIndicesPerAnswer) {
    std::optional<Dataset::Taken> taken = dataset.Take(session->replica, false);
    if (!taken && dataset.HasMore()) {
      if (!others) others = QueueOf(dataset).participants.AnyOtherThan(session->replica);
      if (!*others) taken = dataset.Take(session->replica, true);
    }
    if (!taken && !dataset.HasMore() && granted.empty()) taken = TakeSuspect(dataset);
    if (!taken) break;
    const LeaseRow row{.lease = LeaseId(counters_.next_lease++),
                       .dataset = dataset.id(),
                       .key = taken->key,
                       .holder = waiter.session,
                       .number = waiter.number,
                       .task = NextTask(),
                       .failures = taken->failures,
                       .counted = taken->counted};
    ledger_.Put(row);
    AddLease(row, now);
    granted.push_back(*Describe(row.lease));
    indices += granted.back().indices.size();
  }
  if (granted.empty()) return false;
  if (session->replica.role == job::Role::kChief) chief_used_.insert(dataset.id());
  waiter.reply(Answer::kShards, std::move(granted));
  return true;
}

std::optional<LeasedShard> Dispatcher::Describe(LeaseId id) const {
  auto lease = leases_.find(id);
  if (lease == leases_.end()) return std::nullopt;
  const Dataset* dataset = FindById(lease->second.row.dataset);
  if (dataset == nullptr) return std::nullopt;
  LeasedShard shard{.lease = id, .task = lease->second.row.task};
  shard.key = lease->second.row.key;
  if (parameter_rule_.has_value()) shard.ledger = parameter_rule_->ledger;
  dataset->Fill(shard);
  return shard;
}

void Dispatcher::Settle(Dataset& dataset, Time now) {
  Queue& queue = QueueOf(dataset);
  for (auto waiter = queue.waiters.begin(); waiter != queue.waiters.end();) {
    // Whoever is left waits for the end: nothing is there for any of them.
    if (!dataset.HasMore() && queue.suspects.empty()) break;
    auto here = waiter++;
    if (GrantTo(dataset, *here, now)) EndWait(here->call, now);
  }
  if (!dataset.HasMore()) ApplyEndRule(dataset, now);
}

void Dispatcher::Finish(uint64_t call, Dataset& dataset, Time now) {
  if (Session* session = sessions_.Find(by_call_.at(call).waiter->session)) {
    session->told_finished.insert(dataset.id());
    if (!session->ended) {
      session->ended = true;
      sessions_.MarkDirty(*session);
    }
  }
  dataset.set_told_finished();
  EndWait(call, now).reply(Answer::kFinished, {});
}

// A training program often cannot report its last records before it is told the end: they sit in a
// shuffle buffer or an unfilled batch. So the end is told as soon as nobody but waiting callers
// holds a lease; one caller (the chief, or for want of one the longest-lived) is told last, when no
// other replica holds a lease any more, so that it can take over what the others lose.
void Dispatcher::ApplyEndRule(Dataset& dataset, Time now) {
  // Here a shard is reported when its pushes are acknowledged, so nobody waits for the end to
  // report its last ones; and until all is durable, some of it may have to be done once more.
  if (IsRuled(dataset) && (!dataset.Complete() || !parameter_rule_->durable)) return;
  const Queue& queue = QueueOf(dataset);
  const Participants& participants = queue.participants;
  if (queue.waiters.empty()) return;
  const bool all_holders_wait = participants.AllHoldersWait();
  // While somebody trains, only those are told who were told before. Else nearly all are told and
  // wait no more, so that the walk over all who wait is paid for by each of them once.
  if (!all_holders_wait && queue.waiting_again.empty()) return;
  const bool chief_is_last = chief_expected_ && chief_used_.contains(dataset.id());
  const Incarnation first = participants.FirstWaiting();
  std::vector<uint64_t> told;
  for (const Waiter& waiter : queue.waiters) {
    const bool alone = !participants.any_holders() || participants.IsOnlyHolder(waiter.session);
    const bool last = chief_is_last
                          ? sessions_.Find(waiter.session)->replica.role == job::Role::kChief
                          : waiter.session == first;
    const bool told_before = queue.waiting_again.contains(waiter.session);
    if (alone || told_before || (all_holders_wait && !last)) told.push_back(waiter.call);
  }
  for (const uint64_t call : told) Finish(call, dataset, now);
}

// Since when a lease is worked on. Our clients report one shard after another, so a shard of many
// that were leased at once is not older than the last report.
Time Dispatcher::BusySince(const Lease& lease, const Session* session) {
  if (session == nullptr || session->compat_api) return lease.since;
  return std::max(lease.since, session->reported_at);
}

void Dispatcher::Complete(LeaseId id, Outcome outcome, const std::string& error, Time now) {
  const Lease lease = RemoveLease(id);
  Dataset& dataset = *FindById(lease.row.dataset);
  Session* session = sessions_.Find(lease.row.holder);
  const Dataset::Taken shard{lease.row.key, lease.row.failures, lease.row.counted};
  ledger_.Delete(lease.row.lease);
  switch (outcome) {
    case Outcome::kDone:
      counters_.version += dataset.Done(shard);
      shard_times_.Add(now - BusySince(lease, session));
      if (session != nullptr) {
        session->reported_at = now;
        progressed_.insert(session->replica);
      }
      break;
    case Outcome::kGivenBack:
      dataset.Return(shard);
      break;
    case Outcome::kFailed: {
      const ReplicaRef by = session != nullptr ? session->replica : ReplicaRef{};
      LOG_WARNING("dataset '{}': {} {} failed shard {} of epoch {}: {}", dataset.spec().name,
                  job::NameOf(by.role), by.id, lease.row.key.ordinal, lease.row.key.epoch, error);
      if (fault_tolerant_) {
        dataset.Fail(shard, by, error);
      } else {
        dataset.Quarantine(shard, error);
      }
      break;
    }
  }
  Settle(dataset, now);
}

Verdict Dispatcher::Report(const Session& session, const ShardReport& report, Time now) {
  auto lease = leases_.find(report.lease);
  if (lease == leases_.end() || lease->second.row.holder != session.incarnation) {
    // It did not hang after all: the next ones get the time that it would have needed.
    if (const auto hung = reclaimed_as_hung_.find(report.lease);
        hung != reclaimed_as_hung_.end() && report.outcome == Outcome::kDone) {
      known_slow_ = std::max(known_slow_, 2 * (now - hung->second));
      reclaimed_as_hung_.erase(hung);
    }
    return Verdict::kLost;
  }
  // A program that pushes nothing under its leases has nothing there to lose.
  if (report.outcome == Outcome::kDone && report.ps_epoch != 0 &&
      IsRuled(*FindById(lease->second.row.dataset)) &&
      report.ps_epoch < parameter_rule_->ps_epoch) {
    return Verdict::kReopen;
  }
  Complete(report.lease, report.outcome, report.error, now);
  return Verdict::kAccepted;
}

void Dispatcher::ReportTask(const std::string& name, int32_t task, Outcome outcome,
                            const std::string& error, Time now) {
  const Dataset* dataset = Find(name);
  if (dataset == nullptr) return;
  auto known = tasks_.find({dataset->id(), task});
  if (known == tasks_.end()) return;
  const LeaseId lease = known->second;
  if (outcome == Outcome::kDone) MarkSuspects(leases_.at(lease));
  Complete(lease, outcome, error, now);
}

void Dispatcher::MarkSuspects(const Lease& reported) {
  Session* session = sessions_.Find(reported.row.holder);
  if (session == nullptr) return;
  if (reported.suspect) session->out_of_order = true;
  for (const LeaseId id : held_[reported.row.holder]) {
    Lease& lease = leases_.at(id);
    if (lease.row.dataset != reported.row.dataset) continue;
    lease.suspect = !session->out_of_order && (lease.suspect || id < reported.row.lease);
    std::set<LeaseId>& suspects = QueueOf(*FindById(lease.row.dataset)).suspects;
    if (lease.suspect) {
      suspects.insert(id);
    } else {
      suspects.erase(id);
    }
  }
}

void Dispatcher::GiveBack(LeaseId id, Time now) {
  if (leases_.contains(id)) Complete(id, Outcome::kGivenBack, "", now);
}

void Dispatcher::LoseLease(LeaseId id, const std::string& why, Time now) {
  if (!leases_.contains(id)) return;  // it was taken from its holder before
  Complete(id, fault_tolerant_ ? Outcome::kGivenBack : Outcome::kFailed, why, now);
}

void Dispatcher::ForgiveRoundsOf(Incarnation session) {
  const auto held = held_.find(session);
  if (held == held_.end()) return;
  for (const LeaseId lease : held->second) {
    FindById(leases_.at(lease).row.dataset)->ForgiveLeftoverRound();
  }
}

void Dispatcher::Reclaim(Incarnation session, Time now) {
  if (const auto calls = calls_of_.find(session); calls != calls_of_.end()) {
    const std::set<uint64_t> ended = calls->second;
    for (const uint64_t call : ended) EndWait(call, now).reply(Answer::kRetry, {});
  }
  if (const auto held = held_.find(session); held != held_.end()) {
    const std::set<LeaseId> leases = held->second;
    for (const LeaseId lease : leases) {
      LoseLease(lease, "its worker ended or was lost without a report", now);
    }
  }
  held_.erase(session);
}

std::vector<LeaseId> Dispatcher::KeepOnly(Incarnation session, const std::set<LeaseId>& held,
                                          Time now) {
  std::vector<LeaseId> kept;
  const auto found = held_.find(session);
  if (found == held_.end()) return kept;
  const std::set<LeaseId> mine = found->second;
  for (const LeaseId lease : mine) {
    if (held.contains(lease)) {
      kept.push_back(lease);
    } else {
      GiveBack(lease, now);
    }
  }
  return kept;
}

Duration Dispatcher::HangLimit(bool compat_api) const {
  if (shard_times_.empty() && known_slow_ == Duration::zero() && !compat_api) return kHangAtFirst;
  return std::max<Duration>({kHangAtLeast, 5 * shard_times_.Typical(), known_slow_});
}

void Dispatcher::CheckHangs(Time now) {
  for (size_t checked = 0; checked < kMostChecksATick; ++checked) {
    const std::optional<Incarnation> holder = hang_checks_.TakeDue(now);
    if (!holder) return;
    const auto held = held_.find(*holder);
    if (held == held_.end() || held->second.empty()) continue;
    const Session* session = sessions_.Find(*holder);
    const Duration limit = HangLimit(session != nullptr && session->compat_api);
    Duration next = kHangCheck;
    // The clock of who waits stands still.
    if (session != nullptr && !calls_of_.contains(*holder)) {
      const std::set<LeaseId> leases = held->second;
      for (const LeaseId id : leases) {
        const Duration left = limit - (now - BusySince(leases_.at(id), session));
        if (left >= Duration::zero()) {
          next = std::min<Duration>(next, left + std::chrono::milliseconds(1));
        } else {
          ReclaimHung(id, limit, now);
        }
      }
    }
    hang_checks_.SetAtLatest(*holder, now + next);
  }
}

void Dispatcher::ReclaimHung(LeaseId id, Duration limit, Time now) {
  constexpr size_t kMostRemembered = 1024;
  const Lease& lease = leases_.at(id);
  const Duration busy = now - BusySince(lease, sessions_.Find(lease.row.holder));
  std::string reason = fmt::format(
      "shard {} of epoch {} of '{}' was held for {} s without a report (limit {} s) and {}",
      lease.row.key.ordinal, lease.row.key.epoch, FindById(lease.row.dataset)->spec().name,
      std::chrono::duration_cast<std::chrono::seconds>(busy).count(),
      std::chrono::duration_cast<std::chrono::seconds>(limit).count(),
      fault_tolerant_ ? "went to another worker" : "is not leased again");
  LOG_WARNING("{} {}: {}", job::NameOf(lease.replica.role), lease.replica.id, reason);
  hung_.emplace_back(lease.replica, reason);
  if (reclaimed_as_hung_.size() >= kMostRemembered) {
    reclaimed_as_hung_.erase(reclaimed_as_hung_.begin());
  }
  reclaimed_as_hung_[id] = lease.since;
  LoseLease(id, reason, now);
}

void Dispatcher::Tick(Time now) {
  for (size_t ended = 0; ended < kMostChecksATick; ++ended) {
    const std::optional<uint64_t> call = wait_deadlines_.TakeDue(now);
    if (!call) break;
    EndWait(*call, now).reply(Answer::kWait, {});
  }
  CheckHangs(now);
}

void Dispatcher::SettleAll(Time now) {
  for (auto& [name, dataset] : datasets_) Settle(*dataset, now);
}

bool Dispatcher::IsRuled(const Dataset& dataset) const {
  return parameter_rule_.has_value() && dataset.spec().task_type == "training";
}

checkpoint::ShardSet Dispatcher::DoneShards() const {
  checkpoint::ShardSet done;
  for (const auto& [name, dataset] : datasets_) {
    if (IsRuled(*dataset)) done.datasets[dataset->id().value()] = dataset->DoneShards();
  }
  return done;
}

int64_t Dispatcher::Reopen(const checkpoint::ShardSet& covered, Time now) {
  int64_t reopened = 0;
  for (auto& [name, dataset] : datasets_) {
    if (!IsRuled(*dataset)) continue;
    const auto known = covered.datasets.find(dataset->id().value());
    const bool is_known = known != covered.datasets.end();
    reopened += dataset->Reopen(is_known ? known->second : checkpoint::ShardSet::Dataset{});
  }
  SettleAll(now);
  return reopened;
}

bool Dispatcher::TrainingComplete() const {
  bool any = false;
  for (const auto& [name, dataset] : datasets_) {
    if (!IsRuled(*dataset)) continue;
    if (!dataset->Complete()) return false;
    any = true;
  }
  return any;
}

LeaseId Dispatcher::floor() const {
  return leases_.empty() ? LeaseId(counters_.next_lease) : leases_.begin()->first;
}

bool Dispatcher::AllFinished() const {
  return !datasets_.empty() &&
         std::all_of(datasets_.begin(), datasets_.end(),
                     [](const auto& entry) { return entry.second->Complete(); });
}

bool Dispatcher::AnythingLeft() const {
  return std::any_of(datasets_.begin(), datasets_.end(), [](const auto& entry) {
    return !entry.second->endless() && !entry.second->Complete() &&
           entry.second->row().records_not_trained == 0;
  });
}

bool Dispatcher::GrantLeftoverRound() {
  bool granted = false;
  for (auto& [name, dataset] : datasets_) {
    if (dataset->endless() || dataset->Complete() || !dataset->row().told_finished ||
        dataset->row().leftover_at == dataset->records_trained()) {
      continue;
    }
    dataset->BeginLeftoverRound();
    granted = true;
  }
  return granted;
}

void Dispatcher::Resume() {
  for (auto& [name, dataset] : datasets_) dataset->Resume();
}

void Dispatcher::GiveUpRest() {
  for (auto& [name, dataset] : datasets_) {
    if (!dataset->endless() && !dataset->Complete()) dataset->GiveUpRest();
  }
}

int64_t Dispatcher::LeasesOf(ReplicaRef replica) const {
  const auto found = leases_of_.find(replica);
  return found == leases_of_.end() ? 0 : found->second;
}

int64_t Dispatcher::LeasesOf(const Dataset& dataset) const {
  const auto found = queues_.find(dataset.spec().name);
  return found == queues_.end() ? 0 : static_cast<int64_t>(found->second.leases.size());
}

void Dispatcher::Flush() {
  for (auto& [name, dataset] : datasets_) dataset->Flush();
}

}  // namespace edl::master
