#include "master/shards/dispatcher.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/log.h"
#include "master/shards/shard_checkpoint.h"

namespace edl::master {
namespace {

// The most records of a record shuffle in one answer, because each index is computed and sent. The
// shard that passes the limit is the last one of its answer.
constexpr size_t kMostIndicesPerAnswer = size_t{1} << 18;

}  // namespace

Status Dispatcher::Load(Counters counters, Time now) {
  counters_ = counters;
  EDL_RETURN_IF_ERROR(datasets_.Load());
  EDL_ASSIGN_OR_RETURN(const std::vector<LeaseRow> leases, ledger_.Leases());
  for (const LeaseRow& row : leases) {
    const Session* holder = sessions_.Find(row.holder);
    AddLease(row, holder, now);
    if (holder == nullptr) LoseLease(row.lease, "its worker was lost", now);
  }
  return Ok();
}

void Dispatcher::AddLease(const LeaseRow& row, const Session* holder, Time now) {
  const Lease& lease = leases_.Add(row, holder, now);
  end_rules_[row.dataset].AddLease(row.holder, lease.replica);
  hangs_.OnLeased(row.holder, now);
}

Lease Dispatcher::RemoveLease(LeaseId id) {
  const Lease lease = leases_.Remove(id);
  end_rules_[lease.row.dataset].RemoveLease(lease.row.holder, lease.replica);
  return lease;
}

void Dispatcher::AddWaiter(Waiter waiter, const Dataset* dataset) {
  const Session* session = sessions_.Find(waiter.session);
  CHECK(session != nullptr, "a call of incarnation {} waits, whose session has ended",
        waiter.session);
  waiter.replica = session->replica;
  if (dataset != nullptr) {
    EndRule& end_rule = end_rules_[dataset->id()];
    end_rule.AddWait(waiter.session, waiter.replica);
    if (session->told_finished.contains(dataset->id())) {
      end_rule.MarkAnsweredBefore(waiter.session);
    }
  }
  waiters_.Add(std::move(waiter));
}

Waiter Dispatcher::RemoveWaiter(uint64_t call, Time now) {
  Waiter removed = waiters_.Remove(call);
  if (const Dataset* dataset = datasets_.Find(removed.dataset)) {
    end_rules_[dataset->id()].RemoveWait(removed.session, removed.replica);
  } else {
    waiters_.ForgetDataset(removed.dataset);  // the name may be any text
  }
  leases_.SkipTime(removed.session, removed.since, now);
  return removed;
}

Result<const Dataset*> Dispatcher::Register(DatasetSpec spec, Time now) {
  EDL_RETURN_IF_ERROR(Dataset::Check(spec));
  if (const Dataset* known = datasets_.Find(spec.name)) return known;
  Dataset& dataset = datasets_.Add(DatasetId(counters_.next_dataset++), std::move(spec));
  EndRule& end_rule = end_rules_[dataset.id()];
  for (const Waiter& waiter : waiters_.Of(dataset.spec().name)) {
    end_rule.AddWait(waiter.session, waiter.replica);
  }
  LOG_INFO("dataset '{}': {} records, {} epochs, {} shards of {} records", dataset.spec().name,
           dataset.spec().size, dataset.spec().epochs, dataset.shards_per_epoch(),
           dataset.records_per_shard());
  Settle(dataset, now);
  return &dataset;
}

void Dispatcher::VoidLeases(const Dataset& dataset) {
  const std::set<LeaseId> open = leases_.OfDataset(dataset.id());
  for (const LeaseId lease : open) RemoveLease(lease);
  for (auto& [incarnation, session] : sessions_.all()) session.told_finished.erase(dataset.id());
  end_rules_[dataset.id()].ForgetAnswers();
}

Result<const Dataset*> Dispatcher::Reset(const std::string& name, Time now) {
  Dataset* dataset = datasets_.Find(name);
  if (dataset == nullptr) return NotFound("no dataset is named '{}'", name);
  VoidLeases(*dataset);
  dataset->Reset();
  Settle(*dataset, now);
  return dataset;
}

Result<std::string> Dispatcher::Save(const std::string& name) const {
  const Dataset* dataset = datasets_.Find(name);
  if (dataset == nullptr) return NotFound("no dataset is named '{}'", name);
  std::vector<ShardPosition> leased;
  for (const LeaseId id : leases_.OfDataset(dataset->id())) {
    leased.push_back(leases_.Find(id)->row.key);
  }
  return SaveShards(*dataset, std::move(leased));
}

Result<const Dataset*> Dispatcher::Restore(const std::string& content, Time now) {
  EDL_ASSIGN_OR_RETURN(ShardCheckpoint checkpoint, ParseShards(content));
  if (datasets_.Find(checkpoint.spec.name) == nullptr) {
    EDL_RETURN_IF_ERROR(Register(checkpoint.spec, now).status());
  }
  Dataset& dataset = *datasets_.Find(checkpoint.spec.name);
  EDL_ASSIGN_OR_RETURN(const std::vector<RangeSet::Range> remaining,
                       RemainingShards(checkpoint, dataset));
  VoidLeases(dataset);
  dataset.Restore(checkpoint.epoch, remaining, checkpoint.order);
  Settle(dataset, now);
  return &dataset;
}

void Dispatcher::RequestShards(Waiter waiter, IfUnknown if_unknown, Time now) {
  Dataset* dataset = datasets_.Find(waiter.dataset);
  if (lead_ && lead_->finished) {
    NoteFinished(waiter.session, dataset);
    waiter.reply(LeaseAnswer::kFinished, {});
    return;
  }
  if (lead_ && waiter.dataset != lead_->next_dataset) {
    waiter.reply(LeaseAnswer::kWait, {});
    return;
  }
  if (dataset == nullptr && if_unknown == IfUnknown::kAnswer) {
    waiter.reply(LeaseAnswer::kUnknownDataset, {});
    return;
  }
  waiter.since = now;
  AddWaiter(std::move(waiter), dataset);
  if (dataset != nullptr) Settle(*dataset, now);
}

bool Dispatcher::ReplaceWaiter(Incarnation session, uint64_t number, uint64_t call,
                               LeaseReply reply) {
  const auto replaced = waiters_.Replace(session, number, call, std::move(reply));
  if (replaced == nullptr) return false;
  replaced(LeaseAnswer::kRetry, {});
  return true;
}

bool Dispatcher::DropWaiter(uint64_t call, Time now) {
  if (waiters_.Find(call) == nullptr) return false;
  RemoveWaiter(call, now);
  return true;
}

std::optional<Dataset::TakenShard> Dispatcher::TakeSuspect(Dataset& dataset) {
  const std::set<LeaseId>& suspects = leases_.SuspectsOf(dataset.id());
  if (suspects.empty() || !fault_tolerant_) return std::nullopt;
  const LeaseRow row = RemoveLease(*suspects.begin()).row;
  ledger_.Delete(row.lease);
  dataset.Return({row.key, row.failures, row.counted});
  return dataset.TakeAny();
}

int32_t Dispatcher::NextTask() {
  const int32_t task = counters_.next_task;
  counters_.next_task = task == std::numeric_limits<int32_t>::max() ? 1 : task + 1;
  return task;
}

std::optional<Dataset::TakenShard> Dispatcher::TakeShard(Dataset& dataset, const Session& session) {
  std::optional<Dataset::TakenShard> taken = dataset.Take(session.replica);
  // A replica gets a shard that it failed itself only if there is no other replica to try it.
  if (!taken && dataset.HasMore() && !end_rules_[dataset.id()].AnyOtherThan(session.replica)) {
    taken = dataset.TakeAny();
  }
  return taken;
}

bool Dispatcher::GrantTo(Dataset& dataset, const Waiter& waiter, Time now) {
  const Session* session = sessions_.Find(waiter.session);
  CHECK(session != nullptr, "a call of incarnation {} waits, whose session has ended",
        waiter.session);
  std::vector<LeasedShard> granted;
  size_t indices = 0;
  while (granted.size() < waiter.at_most && indices < kMostIndicesPerAnswer) {
    std::optional<Dataset::TakenShard> taken = TakeShard(dataset, *session);
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
    AddLease(row, session, now);
    granted.push_back(Describe(row, dataset));
    indices += granted.back().indices.size();
  }
  if (granted.empty()) return false;
  waiter.reply(LeaseAnswer::kShards, std::move(granted));
  return true;
}

LeasedShard Dispatcher::Describe(const LeaseRow& row, const Dataset& dataset) const {
  LeasedShard shard{.lease = row.lease, .task = row.task};
  shard.key = row.key;
  shard.ledger = parameter_rule_.ledger();
  dataset.Fill(shard);
  const bool trains = dataset.spec().task_type == TaskType::kTraining;
  if (lead_) shard.version = trains ? counters_.version : lead_->version;
  return shard;
}

std::optional<LeasedShard> Dispatcher::Describe(LeaseId id) const {
  const Lease* lease = leases_.Find(id);
  if (lease == nullptr) return std::nullopt;
  return Describe(lease->row, datasets_.Get(lease->row.dataset));
}

void Dispatcher::SetLead(Lead lead, Time now) {
  if (lead_ == lead) return;
  const std::string before = next_dataset();
  lead_ = std::move(lead);
  if (lead_->finished || lead_->next_dataset != before) {
    std::vector<uint64_t> calls;
    for (const Waiter& waiter : waiters_.Of(before)) calls.push_back(waiter.call);
    for (const uint64_t call : calls) {
      const Waiter waiter = RemoveWaiter(call, now);
      if (lead_->finished) NoteFinished(waiter.session, datasets_.Find(waiter.dataset));
      waiter.reply(lead_->finished ? LeaseAnswer::kFinished : LeaseAnswer::kWait, {});
    }
  }
  if (lead_->finished) {
    // Shards that are lost from now on are leased in a round for leftovers.
    for (const auto& [name, dataset] : datasets_.by_name()) dataset->set_told_finished();
  } else if (Dataset* next = datasets_.Find(lead_->next_dataset)) {
    Settle(*next, now);
  }
}

void Dispatcher::Close(const std::string& name) {
  Dataset* dataset = datasets_.Find(name);
  CHECK(dataset != nullptr, "no dataset is named '{}'", name);
  dataset->Close();
}

Result<ResultPage> Dispatcher::GetResults(const std::string& name, uint32_t generation,
                                          uint64_t first) const {
  const Dataset* dataset = datasets_.Find(name);
  if (dataset == nullptr) return NotFound("no dataset is named '{}'", name);
  if (dataset->row().generation != generation) {
    return NotFound("dataset '{}' has generation {} now, and the results of generation {} are gone",
                    name, dataset->row().generation, generation);
  }
  return ledger_.Results(dataset->id(), generation, first, kLargestResult);
}

bool Dispatcher::TrainingComplete() const {
  if (!parameter_rule_.TrainingComplete(datasets_)) return false;
  return std::ranges::none_of(datasets_.by_name(), [this](const auto& entry) {
    const Dataset& dataset = *entry.second;
    return dataset.closed() && parameter_rule_.AppliesTo(dataset) && LeasesOf(dataset) > 0;
  });
}

void Dispatcher::Settle(Dataset& dataset, Time now) {
  if (lead_ && lead_->holds) return;
  const WaiterQueue::Waiters& waiters = waiters_.Of(dataset.spec().name);
  for (auto waiter = waiters.begin(); waiter != waiters.end();) {
    // No shard is left for any of them, so they wait for the end.
    if (!dataset.HasMore() && leases_.SuspectsOf(dataset.id()).empty()) break;
    const auto current = waiter++;
    if (GrantTo(dataset, *current, now)) RemoveWaiter(current->call, now);
  }
  // With a lead, the end of one dataset is not the end of the job.
  if (lead_ || dataset.HasMore() || parameter_rule_.DelaysEnd(dataset)) return;
  const std::vector<uint64_t> finished =
      end_rules_[dataset.id()].CallsToFinish(waiters, chief_expected_);
  for (const uint64_t call : finished) Finish(call, dataset, now);
}

void Dispatcher::Finish(uint64_t call, Dataset& dataset, Time now) {
  NoteFinished(waiters_.Find(call)->session, &dataset);
  RemoveWaiter(call, now).reply(LeaseAnswer::kFinished, {});
}

void Dispatcher::NoteFinished(Incarnation incarnation, Dataset* dataset) {
  if (dataset != nullptr) dataset->set_told_finished();
  Session* session = sessions_.Find(incarnation);
  if (session == nullptr) return;
  if (dataset != nullptr) session->told_finished.insert(dataset->id());
  if (session->ended) return;
  session->ended = true;
  sessions_.MarkDirty(*session);
}

void Dispatcher::Complete(LeaseId id, ShardOutcome outcome, const std::string& error, Time now) {
  const Lease lease = RemoveLease(id);
  Dataset& dataset = datasets_.Get(lease.row.dataset);
  Session* session = sessions_.Find(lease.row.holder);
  const Dataset::TakenShard shard{lease.row.key, lease.row.failures, lease.row.counted};
  ledger_.Delete(lease.row.lease);
  switch (outcome) {
    case ShardOutcome::kDone: {
      const int64_t batches = dataset.Done(shard);
      // In a job with a model, the version is that of the parameters.
      const bool trained = dataset.spec().task_type == TaskType::kTraining;
      if (!lead_ || trained) counters_.version += batches;
      hangs_.OnDone(lease, session, now);
      if (session != nullptr) {
        session->reported_at = now;
        progressed_.insert(session->replica);
      }
      break;
    }
    case ShardOutcome::kGivenBack:
      dataset.Return(shard);
      break;
    case ShardOutcome::kFailed: {
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

ReportVerdict Dispatcher::Report(const Session& session, const ShardReport& report, Time now) {
  const Lease* lease = leases_.Find(report.lease);
  if (lease == nullptr || lease->row.holder != session.incarnation) {
    if (report.outcome == ShardOutcome::kDone) hangs_.OnLateReport(report.lease, now);
    return ReportVerdict::kLost;
  }
  if (parameter_rule_.MustReopen(datasets_.Get(lease->row.dataset), report)) {
    return ReportVerdict::kReopen;
  }
  if (report.outcome == ShardOutcome::kDone) {
    const Dataset& dataset = datasets_.Get(lease->row.dataset);
    const Status good = result_rule_ ? result_rule_(dataset, report.result) : Ok();
    if (!good.ok()) {
      Complete(report.lease, ShardOutcome::kFailed, good.message(), now);
      return ReportVerdict::kAccepted;
    }
    if (!report.result.empty()) {
      ledger_.Put(ResultRow{.dataset = dataset.id(),
                            .generation = dataset.row().generation,
                            .ordinal = lease->row.key.ordinal,
                            .result = report.result});
    }
  }
  Complete(report.lease, report.outcome, report.error, now);
  return ReportVerdict::kAccepted;
}

void Dispatcher::ReportTask(const std::string& name, int32_t task, ShardOutcome outcome,
                            const std::string& error, Time now) {
  const Dataset* dataset = datasets_.Find(name);
  if (dataset == nullptr) return;
  const Lease* lease = leases_.FindTask(dataset->id(), task);
  if (lease == nullptr) return;
  Session* session = sessions_.Find(lease->row.holder);
  if (outcome == ShardOutcome::kDone && session != nullptr) {
    if (lease->suspect) session->out_of_order = true;
    if (session->out_of_order) {
      leases_.ClearSuspects(*lease);
    } else {
      leases_.SuspectOlder(*lease);
    }
  }
  Complete(lease->row.lease, outcome, error, now);
}

void Dispatcher::GiveBack(LeaseId id, Time now) {
  if (leases_.Find(id) != nullptr) Complete(id, ShardOutcome::kGivenBack, "", now);
}

void Dispatcher::LoseLease(LeaseId id, const std::string& why, Time now) {
  if (leases_.Find(id) == nullptr) return;  // it was taken from its holder before
  Complete(id, fault_tolerant_ ? ShardOutcome::kGivenBack : ShardOutcome::kFailed, why, now);
}

void Dispatcher::ForgiveRoundsOf(Incarnation session) {
  for (const LeaseId id : leases_.HeldBy(session)) {
    datasets_.Get(leases_.Find(id)->row.dataset).ForgiveLeftoverRound();
  }
}

void Dispatcher::Reclaim(Incarnation session, Time now) {
  const std::set<uint64_t> calls = waiters_.CallsOf(session);
  for (const uint64_t call : calls) RemoveWaiter(call, now).reply(LeaseAnswer::kRetry, {});
  const std::set<LeaseId> held = leases_.HeldBy(session);
  for (const LeaseId lease : held) {
    LoseLease(lease, "its worker ended or was lost without a report", now);
  }
  leases_.ForgetHolder(session);
}

std::vector<LeaseId> Dispatcher::KeepOnly(Incarnation session, const std::set<LeaseId>& held,
                                          Time now) {
  std::vector<LeaseId> kept;
  const std::set<LeaseId> known = leases_.HeldBy(session);
  for (const LeaseId lease : known) {
    if (held.contains(lease)) {
      kept.push_back(lease);
    } else {
      GiveBack(lease, now);
    }
  }
  return kept;
}

void Dispatcher::ReclaimHung(const HangDetector::Hung& hung, Time now) {
  const Lease* lease = leases_.Find(hung.lease);
  if (lease == nullptr) return;
  // The time of other shards says nothing about these.
  const TaskType type = datasets_.Get(lease->row.dataset).spec().task_type;
  if ((type == TaskType::kEvaluationMerge || type == TaskType::kExport) &&
      hung.busy < HangDetector::kHangAtFirst) {
    return;
  }
  const std::string reason = fmt::format(
      "shard {} of epoch {} of '{}' was held for {} s without a report (limit {} s) and {}",
      lease->row.key.ordinal, lease->row.key.epoch, datasets_.Get(lease->row.dataset).spec().name,
      std::chrono::duration_cast<std::chrono::seconds>(hung.busy).count(),
      std::chrono::duration_cast<std::chrono::seconds>(hung.limit).count(),
      fault_tolerant_ ? "went to another worker" : "is not leased again");
  LOG_WARNING("{} {}: {}", job::NameOf(lease->replica.role), lease->replica.id, reason);
  hangs_.OnReclaimed(*lease, reason);
  LoseLease(hung.lease, reason, now);
}

void Dispatcher::Tick(Time now) {
  for (size_t ended = 0; ended < kMostChecksATick; ++ended) {
    const std::optional<uint64_t> call = waiters_.TakeDue(now);
    if (!call) break;
    RemoveWaiter(*call, now).reply(LeaseAnswer::kWait, {});
  }
  for (size_t checked = 0; checked < kMostChecksATick; ++checked) {
    const auto hung = hangs_.CheckNext(now);
    if (!hung) break;
    for (const HangDetector::Hung& lease : *hung) ReclaimHung(lease, now);
  }
}

void Dispatcher::SettleAll(Time now) {
  for (const auto& [name, dataset] : datasets_.by_name()) Settle(*dataset, now);
}

int64_t Dispatcher::Reopen(const checkpoint::ShardSet& covered, Time now) {
  const int64_t reopened = parameter_rule_.Reopen(covered, datasets_);
  SettleAll(now);
  return reopened;
}

LeaseId Dispatcher::floor() const {
  const std::map<LeaseId, Lease>& open = leases_.all();
  return open.empty() ? LeaseId(counters_.next_lease) : open.begin()->first;
}

}  // namespace edl::master
