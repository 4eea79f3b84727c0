#include "master/dispatcher.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/log.h"
#include "master/permutation.h"
#include "master/shard_checkpoint.h"

namespace edl::master {

Status Dispatcher::Load(Counters counters, Time now) {
  counters_ = counters;
  EDL_ASSIGN_OR_RETURN(std::vector<DatasetRow> datasets, ledger_.Datasets());
  for (DatasetRow& row : datasets) {
    std::string name = row.spec.name;
    auto dataset = std::make_unique<Dataset>(std::move(row), ledger_);
    // A grant at the old door may have died with the master's last life, and its caller cannot say.
    dataset->ForgiveLeftoverRound();
    datasets_[name] = std::move(dataset);
  }
  EDL_ASSIGN_OR_RETURN(const std::vector<DoneRow> done, ledger_.Done());
  for (const DoneRow& row : done) FindById(row.dataset)->LoadDone(row);
  EDL_ASSIGN_OR_RETURN(const std::vector<SetAsideRow> aside, ledger_.SetAside());
  for (const SetAsideRow& row : aside) FindById(row.dataset)->LoadSetAside(row);
  EDL_ASSIGN_OR_RETURN(const std::vector<ReturnedRow> returned, ledger_.Returned());
  for (const ReturnedRow& row : returned) FindById(row.dataset)->LoadReturned(row);
  EDL_ASSIGN_OR_RETURN(const std::vector<LeaseRow> leases, ledger_.Leases());
  for (const LeaseRow& row : leases) {
    leases_[row.lease] = Lease{.row = row, .since = now, .granted_at = now};
    held_[row.holder].insert(row.lease);
    tasks_[{row.dataset, row.task}] = row.lease;
    const Session* session = sessions_.Find(row.holder);
    if (session == nullptr) {
      GiveBack(row.lease, now);
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
  for (auto& [name, dataset] : datasets_) {
    if (dataset->id() == id) return dataset.get();
  }
  CHECK(false, "no dataset has id {}", id);
}

Result<const Dataset*> Dispatcher::Register(DatasetSpec spec, Time now) {
  EDL_RETURN_IF_ERROR(Dataset::Check(spec));
  auto found = datasets_.find(spec.name);
  if (found == datasets_.end()) {
    const DatasetId id(counters_.next_dataset++);
    DatasetRow row{.id = id, .spec = std::move(spec)};
    row.seed = Mix(seed_, static_cast<uint64_t>(id.value()));
    ledger_.Put(row);
    std::string name = row.spec.name;
    found = datasets_.emplace(name, std::make_unique<Dataset>(std::move(row), ledger_)).first;
    LOG_INFO("dataset '{}': {} records, {} epochs, {} shards of {} records", name,
             found->second->spec().size, found->second->spec().epochs,
             found->second->shards_per_epoch(), found->second->records_per_shard());
    Settle(*found->second, now);
  }
  return found->second.get();
}

void Dispatcher::VoidLeases(const Dataset& dataset) {
  for (auto lease = leases_.begin(); lease != leases_.end();) {
    auto here = lease++;
    if (here->second.row.dataset != dataset.id()) continue;
    held_[here->second.row.holder].erase(here->first);
    tasks_.erase({dataset.id(), here->second.row.task});
    leases_.erase(here);
  }
  for (auto& [incarnation, session] : sessions_.all()) session.told_finished.erase(dataset.id());
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
  for (const auto& [id, lease] : leases_) {
    if (lease.row.dataset == dataset->id()) leased.push_back(lease.row.key);
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
  dataset.Restore(checkpoint.epoch, remaining);
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
  waiters_.push_back(std::move(waiter));
  if (found != datasets_.end()) Settle(*found->second, now);
}

bool Dispatcher::ReplaceWaiter(Incarnation session, uint64_t number, uint64_t call,
                               std::function<void(Answer, std::vector<LeasedShard>)> reply) {
  for (Waiter& waiter : waiters_) {
    if (waiter.session == session && waiter.number == number) {
      waiter.call = call;
      auto old = std::exchange(waiter.reply, std::move(reply));
      old(Answer::kRetry, {});
      return true;
    }
  }
  return false;
}

bool Dispatcher::DropWaiter(uint64_t call, Time now) {
  for (auto waiter = waiters_.begin(); waiter != waiters_.end(); ++waiter) {
    if (waiter->call == call) {
      EndWait(waiter, now);
      return true;
    }
  }
  return false;
}

Waiter Dispatcher::EndWait(WaiterList::iterator waiter, Time now) {
  Waiter ended = std::move(*waiter);
  waiters_.erase(waiter);
  for (const LeaseId lease : held_[ended.session]) {
    leases_.at(lease).since += now - std::max(ended.since, leases_.at(lease).since);
  }
  return ended;
}

bool Dispatcher::OthersActive(const Dataset& dataset, ReplicaRef replica) const {
  const auto other = [&](Incarnation incarnation) {
    const Session* session = sessions_.Find(incarnation);
    return session != nullptr && session->replica != replica;
  };
  return std::any_of(waiters_.begin(), waiters_.end(),
                     [&](const Waiter& waiter) {
                       return waiter.dataset == dataset.spec().name && other(waiter.session);
                     }) ||
         std::any_of(leases_.begin(), leases_.end(), [&](const auto& lease) {
           return lease.second.row.dataset == dataset.id() && other(lease.second.row.holder);
         });
}

std::optional<Dataset::Taken> Dispatcher::TakeSuspect(Dataset& dataset) {
  for (auto lease = leases_.begin(); lease != leases_.end(); ++lease) {
    if (lease->second.row.dataset != dataset.id() || !lease->second.suspect) continue;
    const LeaseRow row = lease->second.row;
    held_[row.holder].erase(row.lease);
    tasks_.erase({row.dataset, row.task});
    leases_.erase(lease);
    ledger_.Delete(row.lease);
    dataset.Return({row.key, row.failures, row.counted});
    return dataset.Take({}, true);
  }
  return std::nullopt;
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
  while (granted.size() < waiter.at_most) {
    std::optional<Dataset::Taken> taken = dataset.Take(session->replica, false);
    if (!taken && dataset.HasMore()) {
      if (!others) others = OthersActive(dataset, session->replica);
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
    leases_[row.lease] = Lease{.row = row, .since = now, .granted_at = now};
    held_[row.holder].insert(row.lease);
    tasks_[{row.dataset, row.task}] = row.lease;
    granted.push_back(*Describe(row.lease));
  }
  if (granted.empty()) return false;
  if (session->replica.role == job::Role::kChief) chief_used_.insert(dataset.id());
  waiter.reply(Answer::kShards, std::move(granted));
  return true;
}

std::optional<LeasedShard> Dispatcher::Describe(LeaseId id) const {
  auto lease = leases_.find(id);
  if (lease == leases_.end()) return std::nullopt;
  for (const auto& [name, dataset] : datasets_) {
    if (dataset->id() != lease->second.row.dataset) continue;
    LeasedShard shard{.lease = id, .task = lease->second.row.task};
    shard.key = lease->second.row.key;
    if (parameter_rule_.has_value()) shard.ledger = parameter_rule_->ledger;
    dataset->Fill(shard);
    return shard;
  }
  return std::nullopt;
}

void Dispatcher::Settle(Dataset& dataset, Time now) {
  for (auto waiter = waiters_.begin(); waiter != waiters_.end();) {
    auto here = waiter++;
    if (here->dataset != dataset.spec().name) continue;
    Session* session = sessions_.Find(here->session);
    if (session->replica.role == job::Role::kChief) chief_used_.insert(dataset.id());
    if (GrantTo(dataset, *here, now)) EndWait(here, now);
  }
  if (!dataset.HasMore()) ApplyEndRule(dataset, now);
}

void Dispatcher::Finish(WaiterList::iterator waiter, Dataset& dataset, Time now) {
  if (Session* session = sessions_.Find(waiter->session)) {
    session->told_finished.insert(dataset.id());
    if (!session->ended) {
      session->ended = true;
      sessions_.MarkDirty(*session);
    }
  }
  dataset.set_told_finished();
  EndWait(waiter, now).reply(Answer::kFinished, {});
}

// A training program often cannot report its last records before it is told the end: they sit in a
// shuffle buffer or an unfilled batch. So the end is told as soon as nobody but waiting callers
// holds a lease; one caller (the chief, or for want of one the longest-lived) is told last, when no
// other replica holds a lease any more, so that it can take over what the others lose.
void Dispatcher::ApplyEndRule(Dataset& dataset, Time now) {
  // Here a shard is reported when its pushes are acknowledged, so nobody waits for the end to
  // report its last ones; and until all is durable, some of it may have to be done once more.
  if (IsRuled(dataset) && (!dataset.Complete() || !parameter_rule_->durable)) return;
  std::set<Incarnation> waiting;
  std::set<Incarnation> holders;
  for (const Waiter& waiter : waiters_) {
    if (waiter.dataset == dataset.spec().name) waiting.insert(waiter.session);
  }
  if (waiting.empty()) return;
  for (const auto& [id, lease] : leases_) {
    if (lease.row.dataset == dataset.id()) holders.insert(lease.row.holder);
  }
  const bool all_holders_wait =
      std::includes(waiting.begin(), waiting.end(), holders.begin(), holders.end());
  const bool chief_is_last = chief_expected_ && chief_used_.contains(dataset.id());
  const auto is_chief = [&](Incarnation incarnation) {
    return sessions_.Find(incarnation)->replica.role == job::Role::kChief;
  };
  for (auto waiter = waiters_.begin(); waiter != waiters_.end();) {
    auto here = waiter++;
    if (here->dataset != dataset.spec().name) continue;
    const bool alone = holders.empty() || (holders.size() == 1 && holders.contains(here->session));
    const bool last = chief_is_last ? is_chief(here->session) : here->session == *waiting.begin();
    const bool told_before = sessions_.Find(here->session)->told_finished.contains(dataset.id());
    if (alone || told_before || (all_holders_wait && !last)) Finish(here, dataset, now);
  }
}

void Dispatcher::Complete(std::map<LeaseId, Lease>::iterator place, Outcome outcome,
                          const std::string& error, Time now) {
  const Lease lease = place->second;
  Dataset& dataset = *FindById(lease.row.dataset);
  Session* session = sessions_.Find(lease.row.holder);
  const Dataset::Taken shard{lease.row.key, lease.row.failures, lease.row.counted};
  leases_.erase(place);
  held_[lease.row.holder].erase(lease.row.lease);
  tasks_.erase({lease.row.dataset, lease.row.task});
  ledger_.Delete(lease.row.lease);
  switch (outcome) {
    case Outcome::kDone:
      counters_.version += dataset.Done(shard);
      slowest_shard_ = std::max(slowest_shard_, now - lease.since);
      if (session != nullptr) progressed_.insert(session->replica);
      break;
    case Outcome::kGivenBack:
      dataset.Return(shard);
      break;
    case Outcome::kFailed: {
      const ReplicaRef by = session != nullptr ? session->replica : ReplicaRef{};
      LOG_WARNING("dataset '{}': {} {} failed shard {} of epoch {}: {}", dataset.spec().name,
                  job::NameOf(by.role), by.id, lease.row.key.ordinal, lease.row.key.epoch, error);
      dataset.Fail(shard, by, error);
      break;
    }
  }
  Settle(dataset, now);
}

Verdict Dispatcher::Report(const Session& session, const ShardReport& report, Time now) {
  auto lease = leases_.find(report.lease);
  if (lease == leases_.end() || lease->second.row.holder != session.incarnation) {
    return Verdict::kLost;
  }
  // A program that pushes nothing under its leases has nothing there to lose.
  if (report.outcome == Outcome::kDone && report.ps_epoch != 0 &&
      IsRuled(*FindById(lease->second.row.dataset)) &&
      report.ps_epoch < parameter_rule_->ps_epoch) {
    return Verdict::kReopen;
  }
  Complete(lease, report.outcome, report.error, now);
  return Verdict::kAccepted;
}

void Dispatcher::ReportTask(const std::string& name, int32_t task, Outcome outcome,
                            const std::string& error, Time now) {
  const Dataset* dataset = Find(name);
  if (dataset == nullptr) return;
  auto known = tasks_.find({dataset->id(), task});
  if (known == tasks_.end()) return;
  auto lease = leases_.find(known->second);
  if (outcome == Outcome::kDone) MarkSuspects(lease->second);
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
  }
}

void Dispatcher::GiveBack(LeaseId id, Time now) {
  auto lease = leases_.find(id);
  if (lease != leases_.end()) Complete(lease, Outcome::kGivenBack, "", now);
}

void Dispatcher::ForgiveRoundsOf(Incarnation session) {
  const auto held = held_.find(session);
  if (held == held_.end()) return;
  for (const LeaseId lease : held->second) {
    FindById(leases_.at(lease).row.dataset)->ForgiveLeftoverRound();
  }
}

void Dispatcher::Reclaim(Incarnation session, Time now) {
  for (auto waiter = waiters_.begin(); waiter != waiters_.end();) {
    auto here = waiter++;
    if (here->session == session) EndWait(here, now).reply(Answer::kRetry, {});
  }
  KeepOnly(session, {}, now);
  held_.erase(session);
}

std::vector<LeaseId> Dispatcher::KeepOnly(Incarnation session, const std::set<LeaseId>& held,
                                          Time now) {
  std::vector<LeaseId> kept;
  const std::set<LeaseId> mine = held_[session];
  for (const LeaseId lease : mine) {
    if (held.contains(lease)) {
      kept.push_back(lease);
    } else {
      GiveBack(lease, now);
    }
  }
  return kept;
}

void Dispatcher::CheckHangs(Time now) {
  const Duration limit = std::max<Duration>(kHangAtLeast, 5 * slowest_shard_);
  std::set<Incarnation> waiting;
  for (const Waiter& waiter : waiters_) waiting.insert(waiter.session);
  std::vector<LeaseId> hanging;
  for (const auto& [id, lease] : leases_) {
    const Session* session = sessions_.Find(lease.row.holder);
    if (session == nullptr || !session->old_door || waiting.contains(lease.row.holder)) continue;
    if (now - lease.since > limit) hanging.push_back(id);
  }
  for (const LeaseId id : hanging) {
    LOG_WARNING("lease {} takes longer than {} s: its shard goes to another worker", id,
                std::chrono::duration_cast<std::chrono::seconds>(limit).count());
    GiveBack(id, now);
  }
}

void Dispatcher::Tick(Time now) {
  for (auto waiter = waiters_.begin(); waiter != waiters_.end();) {
    auto here = waiter++;
    if (here->deadline && *here->deadline <= now) EndWait(here, now).reply(Answer::kWait, {});
  }
  CheckHangs(now);
}

void Dispatcher::SettleAll(Time now) {
  for (auto& [name, dataset] : datasets_) Settle(*dataset, now);
}

bool Dispatcher::IsRuled(const Dataset& dataset) const {
  return parameter_rule_.has_value() && dataset.spec().task_type == "training";
}

job::ShardSet Dispatcher::DoneShards() const {
  job::ShardSet done;
  for (const auto& [name, dataset] : datasets_) {
    if (IsRuled(*dataset)) done.datasets[dataset->id().value()] = dataset->DoneShards();
  }
  return done;
}

int64_t Dispatcher::Reopen(const job::ShardSet& covered, Time now) {
  int64_t reopened = 0;
  for (auto& [name, dataset] : datasets_) {
    if (!IsRuled(*dataset)) continue;
    const auto known = covered.datasets.find(dataset->id().value());
    const bool is_known = known != covered.datasets.end();
    reopened += dataset->Reopen(is_known ? known->second : job::ShardSet::Dataset{});
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

void Dispatcher::GiveUpRest() {
  for (auto& [name, dataset] : datasets_) {
    if (!dataset->endless() && !dataset->Complete()) dataset->GiveUpRest();
  }
}

int64_t Dispatcher::LeasesOf(ReplicaRef replica) const {
  int64_t count = 0;
  for (const auto& [incarnation, leases] : held_) {
    const Session* session = sessions_.Find(incarnation);
    if (session != nullptr && session->replica == replica) {
      count += static_cast<int64_t>(leases.size());
    }
  }
  return count;
}

void Dispatcher::Flush() {
  for (auto& [name, dataset] : datasets_) dataset->Flush();
}

}  // namespace edl::master
