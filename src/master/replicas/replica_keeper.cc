#include "master/replicas/replica_keeper.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/log.h"
#include "job/names.h"
#include "master/ledger/damaged_entry.h"

namespace edl::master {
namespace {

using job::ExitCause;
using job::ReplicaState;
using job::Role;

bool IsActive(ReplicaState state) {
  return state == ReplicaState::kPending || state == ReplicaState::kRunning;
}

// The delay before a relaunch after a failure: the first relaunch is immediate, the next ones come
// after 1 s, 2 s, 4 s, ... 30 s.
Duration RelaunchBackoff(int failures) {
  constexpr BackoffLimits kLimits{.first = std::chrono::seconds(1),
                                  .longest = std::chrono::seconds(30)};
  return kLimits.After(failures - 1);
}

// The delay before a relaunch after a replica that made no progress, for any cause of its exit: the
// first three relaunches are immediate, the next ones come after 2 s, 4 s, ... 60 s. What prevents
// replicas from starting (a node without its GPUs, a full disk) often ends within minutes.
Duration IdleBackoff(int idle_lives) {
  constexpr BackoffLimits kLimits{.first = std::chrono::seconds(2),
                                  .longest = std::chrono::seconds(60)};
  return kLimits.After(idle_lives - 3);
}

constexpr const char* kCountsKey = "replica_counts";  // in the ledger's meta
constexpr double kMemoryGrowth = 1.5;
constexpr int64_t kMemoryGrowthLimit = 4;  // times the memory of the flags

}  // namespace

Status ReplicaKeeper::Load(Time now) {
  MakeSlots();
  EDL_ASSIGN_OR_RETURN(const std::vector<SlotRow> slots, ledger_.Slots());
  for (const SlotRow& row : slots) {
    Slot& slot = slots_[{row.role, row.index}];
    slot.row = row;
    slot.given_up = row.failures > FailuresAllowed(slot);
    // A resumed job may have fewer parameter servers than before.
    if (row.role == Role::kPs && row.index >= spec_.num_ps) slot.row.wanted = false;
  }
  EDL_ASSIGN_OR_RETURN(const std::vector<ReplicaRow> replicas, ledger_.Replicas());
  for (const ReplicaRow& row : replicas) {
    replicas_[row.name] = Replica{.row = row, .running_since = now, .from_ledger = true};
    Slot& slot = slots_[{row.replica.role, row.index}];
    slot.row.role = row.replica.role;
    slot.row.index = row.index;
    const Replica* current = Find(slot.current);
    if (current == nullptr || current->row.replica.id < row.replica.id) slot.current = row.name;
    int64_t& next = next_id_[row.replica.role];
    if (row.replica.id >= next) next = row.replica.id + 1;
    if (!IsActive(row.state)) ended_.push_back(row.name);
  }
  for (const auto& [name, replica] : replicas_) {
    if (SlotOf(replica).current != name && IsRelaunchAfter(replica)) ++relaunches_;
  }
  EDL_ASSIGN_OR_RETURN(const auto meta, ledger_.Meta());
  if (const auto saved = meta.find(kCountsKey); saved != meta.end()) {
    const nlohmann::json in = ReadJson(saved->second);
    if (!in.is_object()) return DamagedEntry(kCountsKey, "expected a JSON object");
    forgotten_ = in.value("forgotten", int64_t{0});
    relaunches_ = std::max(relaunches_, in.value("relaunches", int64_t{0}));
  }
  return Ok();
}

void ReplicaKeeper::SaveCounts() {
  ledger_.PutMeta(kCountsKey,
                  fmt::format(R"({{"forgotten":{},"relaunches":{}}})", forgotten_, relaunches_));
}

void ReplicaKeeper::Prune() {
  const auto is_current = [this](const Replica& replica) {
    return SlotOf(replica).current == replica.row.name;
  };
  // Bounds the work of one call: when all workers have ended, each is the newest of its slot and is
  // kept.
  constexpr size_t kMostChecks = 200;
  size_t checks = std::min(ended_.size(), kMostChecks);
  bool pruned = false;
  for (; ended_.size() > kKeptEnded && checks > 0; --checks) {
    const std::string name = std::move(ended_.front());
    ended_.pop_front();
    const auto found = replicas_.find(name);
    if (found == replicas_.end()) continue;
    if (is_current(found->second)) {
      ended_.push_back(name);  // may be removed after the slot's next launch
      continue;
    }
    ledger_.DeleteReplica(name);
    replicas_.erase(found);
    ++forgotten_;
    pruned = true;
  }
  if (pruned) SaveCounts();
}

bool ReplicaKeeper::HasEnded(ReplicaRef replica) const {
  if (const Replica* found = Find(replica)) return !IsActive(found->row.state);
  const auto next = next_id_.find(replica.role);
  return next != next_id_.end() && replica.id < next->second;
}

void ReplicaKeeper::MakeSlots() {
  if (spec_.external_replicas) return;
  for (const Role role : job::kReplicaRoles) {
    for (int index = 0; index < spec_.CountOf(role); ++index) MakeSlot(role, index);
  }
}

ReplicaKeeper::Slot& ReplicaKeeper::MakeSlot(Role role, int index) {
  const auto [place, made] = slots_.try_emplace({role, index});
  Slot& slot = place->second;
  if (!made) return slot;
  slot.row.role = role;
  slot.row.index = index;
  if (auto found = spec_.resources.find(role); found != spec_.resources.end()) {
    slot.row.memory_bytes = found->second.memory_limit_bytes;
  }
  return slot;
}

const ReplicaKeeper::Replica* ReplicaKeeper::Find(const std::string& name) const {
  auto found = replicas_.find(name);
  return found == replicas_.end() ? nullptr : &found->second;
}

const ReplicaKeeper::Replica* ReplicaKeeper::Find(ReplicaRef replica) const {
  return Find(spec_.ReplicaName(replica.role, replica.id));
}

ReplicaKeeper::Slot& ReplicaKeeper::SlotOf(const Replica& replica) {
  return slots_.at({replica.row.replica.role, replica.row.index});
}

void ReplicaKeeper::SetState(Replica& replica, ReplicaState state, const std::string& reason) {
  if (replica.row.state != state) ++membership_;
  if (!IsActive(state)) troubled_.Clear(replica.row.replica);
  quiet_until_.reset();
  if (const auto host = hosts_.find(replica.host);
      state != ReplicaState::kRunning && host != hosts_.end() && host->second == replica.row.name) {
    hosts_.erase(host);
  }
  replica.row.state = state;
  replica.row.reason = reason;
  ledger_.Put(replica.row);
  if (!IsActive(state)) ended_.push_back(replica.row.name);
}

void ReplicaKeeper::Launch(Slot& slot, bool relaunched) {
  if (next_id_[slot.row.role] >= kMostLaunches) {
    failure_ = Failure{fmt::format("{} {}s were launched, which is the limit: no more ids are left",
                                   kMostLaunches, job::NameOf(slot.row.role)),
                       {}};
    return;
  }
  const ReplicaRef ref{slot.row.role, next_id_[slot.row.role]++};
  Replica replica{.row = {.name = spec_.ReplicaName(ref.role, ref.id),
                          .replica = ref,
                          .index = slot.row.index}};
  replica.reported = true;  // this process of the master creates it
  ledger_.Put(replica.row);
  ledger_.Put(slot.row);
  const Replica* before = Find(slot.current);
  if (relaunched && before != nullptr && IsRelaunchAfter(*before)) ++relaunches_;
  slot.current = replica.row.name;
  slot.relaunch_at.reset();
  if (relaunched && forgotten_ > 0) SaveCounts();
  commands_.emplace_back(LaunchCommand{.name = replica.row.name,
                                       .replica = ref,
                                       .index = slot.row.index,
                                       .memory_bytes = slot.row.memory_bytes,
                                       .num_workers = spec_.CountOf(Role::kWorker),
                                       .relaunched = relaunched,
                                       .ps_lanes = ps_lanes_});
  replicas_[replica.row.name] = std::move(replica);
}

void ReplicaKeeper::OnSynced(Time now) {
  synced_ = true;
  if (spec_.external_replicas) return;
  for (auto& [name, replica] : replicas_) {
    if (!IsActive(replica.row.state)) continue;
    Slot& slot = SlotOf(replica);
    if (replica.reported) {
      // The previous process of the master may have died between its decision and the stop.
      if (!slot.row.wanted && !stopping_) Stop(replica, now);
      continue;
    }
    if (stopping_ || !slot.row.wanted) {
      SetState(replica, ReplicaState::kStopped, "had exited when the master was restarted");
    } else if (replica.row.state == ReplicaState::kPending) {
      // The launch is in the ledger, but the backend may not have received it. Launching a name
      // twice has the effect of launching it once.
      commands_.emplace_back(LaunchCommand{.name = name,
                                           .replica = replica.row.replica,
                                           .index = replica.row.index,
                                           .memory_bytes = slot.row.memory_bytes,
                                           .num_workers = spec_.CountOf(Role::kWorker),
                                           .relaunched = replica.row.replica.id > replica.row.index,
                                           .ps_lanes = ps_lanes_});
    } else {
      SetState(replica, ReplicaState::kKilled, "had exited when the master was restarted");
      if (slot.current == name) Refill(slot, now);
    }
  }
  Tick(now);
}

void ReplicaKeeper::OnPending(const std::string& name, const std::string& reason, Time now) {
  auto found = replicas_.find(name);
  if (found == replicas_.end() || !IsActive(found->second.row.state)) {
    StopName(name, now);
    return;
  }
  found->second.reported = true;
  if (found->second.row.state == ReplicaState::kPending) found->second.row.reason = reason;
}

void ReplicaKeeper::OnRunning(const std::string& name, int64_t process_id, const std::string& host,
                              int64_t version, Time now) {
  auto found = replicas_.find(name);
  if (found == replicas_.end() || !IsActive(found->second.row.state)) {
    // The replica is not in the ledger, or has exited according to it.
    StopName(name, now);
    return;
  }
  Replica& replica = found->second;
  // The backend repeats the event when the state of the node changes.
  if (std::exchange(replica.reported, true) && replica.row.state == ReplicaState::kRunning) return;
  replica.running_since = now;
  replica.first_version = version;
  replica.row.process_id = process_id;
  replica.host = host;
  hosts_[host] = name;
  SetState(replica, ReplicaState::kRunning, "");
}

void ReplicaKeeper::OnJoined(ReplicaRef replica) {
  const std::string name = spec_.ReplicaName(replica.role, replica.id);
  auto found = replicas_.find(name);
  if (found == replicas_.end() && spec_.external_replicas) {
    replicas_[name].row = {.name = name,
                           .replica = replica,
                           .index = static_cast<int>(replica.id),
                           .state = ReplicaState::kRunning,
                           .joined = true};
    ++membership_;
    return;
  }
  if (found == replicas_.end()) return;
  found->second.silent = false;
  if (found->second.row.joined) return;
  found->second.row.joined = true;
  ledger_.Put(found->second.row);
}

void ReplicaKeeper::OnLeft(ReplicaRef replica) {
  if (replicas_.erase(spec_.ReplicaName(replica.role, replica.id)) > 0) ++membership_;
  troubled_.Clear(replica);
}

void ReplicaKeeper::NotePsAskedForData(ReplicaRef replica) {
  if (ps_asked_for_data_) return;
  ps_asked_for_data_ = true;
  LOG_WARNING(
      "{} {} requests data and is refused: it runs the program of the workers, which does not read "
      "TF_CONFIG",
      job::NameOf(replica.role), replica.id);
}

void ReplicaKeeper::Replace(ReplicaRef ref, const std::string& why) {
  auto found = replicas_.find(spec_.ReplicaName(ref.role, ref.id));
  if (found == replicas_.end() || !IsActive(found->second.row.state)) return;
  Replica& replica = found->second;
  if (replica.stop_asked) return;
  LOG_WARNING("replacing {}: {}", replica.row.name, why);
  replica.replaced_for = why;
  replica.row.reason = why;
  ledger_.Put(replica.row);
  commands_.emplace_back(StopCommand{replica.row.name, kStopGrace});
}

void ReplicaKeeper::OnExit(const std::string& name, const ExitCause& reported, EndOfLife end,
                           Time now) {
  commands_.emplace_back(AcknowledgeCommand{name});
  stops_.erase(name);
  without_node_.erase(name);
  auto found = replicas_.find(name);
  if (found == replicas_.end() || !IsActive(found->second.row.state)) return;
  Replica& replica = found->second;
  const ExitCause cause = replica.replaced_for.empty() ? reported
                                                       : ExitCause{.kind = ExitCause::Kind::kKilled,
                                                                   .message = replica.replaced_for};
  Slot& slot = SlotOf(replica);
  const bool served =
      replica.row.replica.role == Role::kPs || replica.row.replica.role == Role::kEvaluator;
  const bool lasted =
      replica.row.state == ReplicaState::kRunning && now - replica.running_since >= kReadyAfter;
  const bool progressed = end.progressed || (served && lasted);
  if (stopping_ || !slot.row.wanted || replica.stop_asked) {
    // If the slot is wanted again, the next Tick refills it.
    SetState(replica, ReplicaState::kStopped, cause.message);
    return;
  }
  LOG_INFO("{} exited: {}", name, cause.message);
  CountLife(slot, progressed, end.version, now);
  if (cause.kind == ExitCause::Kind::kSucceeded && !end.fetch_unanswered) {
    SetState(replica, ReplicaState::kSucceeded, "");
    slot.row.succeeded = true;
    ledger_.Put(slot.row);
    return;
  }
  if (slot.row.role == Role::kPs) BringBackChief(now);
  const bool left = end.fetch_unanswered && (cause.kind == ExitCause::Kind::kSucceeded ||
                                             cause.kind == ExitCause::Kind::kFailed);
  switch (left ? ExitCause::Kind::kSucceeded : cause.kind) {
    case ExitCause::Kind::kSucceeded:
      SetState(replica, ReplicaState::kKilled, "left while the master did not answer");
      break;
    case ExitCause::Kind::kKilled:
      SetState(replica, ReplicaState::kKilled, cause.message);
      break;
    case ExitCause::Kind::kOutOfMemory: {
      SetState(replica, ReplicaState::kFailed, cause.message);
      const int64_t asked = spec_.resources.at(slot.row.role).memory_limit_bytes;
      const auto more =
          static_cast<int64_t>(kMemoryGrowth * static_cast<double>(slot.row.memory_bytes));
      if (asked == 0 || more > kMemoryGrowthLimit * asked) {
        CountFailure(slot, replica, cause.message, std::move(end), now);
        return;
      }
      slot.row.memory_bytes = more;
      break;
    }
    case ExitCause::Kind::kFailed:
    case ExitCause::Kind::kNotLaunched:
      SetState(replica, ReplicaState::kFailed, cause.message);
      CountFailure(slot, replica, cause.message, std::move(end), now);
      return;
  }
  if (IsStuck(slot, now)) {
    const std::string why = fmt::format("{} replicas in a row without progress; the last one: {}",
                                        slot.row.idle_lives, cause.message);
    if (CanDoWithout(slot, end.version)) {
      slot.given_up = true;
      slot.row.failures = std::max(slot.row.failures, FailuresAllowed(slot) + 1);
      ledger_.Put(slot.row);
      LOG_WARNING("{}: {}; the job continues without it", replica.row.name, why);
      return;
    }
    CountFailure(slot, replica, why, std::move(end), now);
    return;
  }
  Refill(slot, now + IdleBackoff(slot.row.idle_lives));
}

void ReplicaKeeper::CountLife(Slot& slot, bool progressed, int64_t version, Time now) {
  if (progressed) {
    slot.row.idle_lives = 0;
    slot.idle_since.reset();
    return;
  }
  ++slot.row.idle_lives;
  if (!slot.idle_since) {
    slot.idle_since = now;
    slot.idle_version = version;
  }
}

bool ReplicaKeeper::IsStuck(const Slot& slot, Time now) const {
  return slot.row.idle_lives >= kIdleLives && slot.idle_since &&
         now - *slot.idle_since >= kIdleAtLeast;
}

bool ReplicaKeeper::CanDoWithout(const Slot& slot, int64_t version) const {
  if (slot.row.role != Role::kWorker || version <= slot.idle_version) return false;
  if (spec_.critical_workers.relaunches.contains(slot.row.index)) return false;
  return std::any_of(slots_.begin(), slots_.end(), [&](const auto& entry) {
    return &entry.second != &slot && entry.first.first == Role::kWorker &&
           entry.second.row.wanted && !entry.second.given_up;
  });
}

int ReplicaKeeper::FailuresAllowed(const Slot& slot) const {
  if (slot.row.role == Role::kPs) return spec_.ps_relaunch_max_num;
  if (slot.row.role == Role::kWorker) {
    auto listed = spec_.critical_workers.relaunches.find(slot.row.index);
    if (listed != spec_.critical_workers.relaunches.end()) return listed->second;
  }
  return spec_.relaunch_on_worker_failure;
}

bool ReplicaKeeper::WaitsForPs(const Slot& slot) const {
  // Like the original, worker 0 is launched at once.
  if (!spec_.launch_worker_after_ps_running) return false;
  if (slot.row.role != Role::kWorker || slot.row.index == 0) return false;
  return std::any_of(slots_.begin(), slots_.end(), [this](const auto& entry) {
    const Slot& ps = entry.second;
    if (ps.row.role != Role::kPs || !ps.row.wanted || ps.row.succeeded || ps.given_up) return false;
    const Replica* current = Find(ps.current);
    return current == nullptr || current->row.state != ReplicaState::kRunning;
  });
}

bool ReplicaKeeper::FailsTheJob(const Slot& slot) const {
  if (slot.row.role == Role::kPs) return spec_.ps_is_critical;
  if (slot.row.role != Role::kWorker) return true;
  switch (spec_.critical_workers.kind) {
    case job::CriticalWorkers::Kind::kDefault:
      return true;
    case job::CriticalWorkers::Kind::kNone:
      return false;
    case job::CriticalWorkers::Kind::kListed:
      return spec_.critical_workers.relaunches.contains(slot.row.index);
  }
  return true;
}

void ReplicaKeeper::CountFailure(Slot& slot, const Replica& replica, const std::string& why,
                                 EndOfLife end, Time now) {
  ++slot.row.failures;
  ledger_.Put(slot.row);
  const int allowed = FailuresAllowed(slot);
  if (slot.row.failures <= allowed) {
    Refill(slot, now + RelaunchBackoff(slot.row.failures));
    return;
  }
  const std::string reason =
      fmt::format("{} failed ({}); this was failure {} of {} {}, and {} relaunch(es) are allowed",
                  replica.row.name, why, slot.row.failures, job::NameOf(slot.row.role),
                  slot.row.index, allowed);
  slot.given_up = true;
  const bool no_worker_left = slot.row.role == Role::kWorker &&
                              std::none_of(slots_.begin(), slots_.end(), [](const auto& entry) {
                                return entry.first.first == Role::kWorker &&
                                       entry.second.row.wanted && !entry.second.given_up;
                              });
  if (FailsTheJob(slot) || no_worker_left) {
    failure_ = Failure{reason, std::move(end.last_lines)};
  } else {
    LOG_WARNING("{}; the job continues without it", reason);
  }
}

void ReplicaKeeper::BringBackChief(Time now) {
  // A relaunched TensorFlow ps is empty, and only a chief restores its variables.
  auto chief = slots_.find({Role::kChief, 0});
  if (!spec_.need_tf_config || chief == slots_.end() || !chief->second.row.succeeded) return;
  if (TrainingEnded()) return;
  chief->second.row.succeeded = false;
  Refill(chief->second, now);
}

void ReplicaKeeper::Refill(Slot& slot, Time at) {
  slot.relaunch_at = at;
  quiet_until_.reset();
  ledger_.Put(slot.row);
}

void ReplicaKeeper::Tick(Time now) {
  last_tick_ = now;
  RetryStops(now);
  Prune();
  if (!synced_ || stopping_ || failure_) return;
  if (quiet_until_ && now < *quiet_until_) return;
  Time next = Time::max();
  for (const Role role : job::kReplicaRoles) {
    for (auto& [key, slot] : slots_) {
      if (key.first != role || !slot.row.wanted || slot.row.succeeded || slot.given_up) continue;
      if (slot.current.empty()) {
        if (WaitsForPs(slot)) {  // a change of a replica's state resets quiet_until_
          if (!std::exchange(logged_wait_for_ps_, true)) {
            LOG_INFO("all workers except worker 0 are launched when every ps runs");
          }
        } else {
          Launch(slot, false);
        }
        continue;
      }
      const bool due = slot.relaunch_at && *slot.relaunch_at <= now;
      // The previous process of the master recorded the exit and died before the relaunch.
      const bool forgotten = !slot.relaunch_at && !IsActive(Find(slot.current)->row.state);
      if (due || forgotten) {
        Launch(slot, true);
      } else if (slot.relaunch_at) {
        next = std::min(next, *slot.relaunch_at);
      }
    }
  }
  quiet_until_ = next;
}

Status ReplicaKeeper::Scale(int num_workers, Time now) {
  const int slots_at_start = spec_.CountOf(Role::kWorker);
  if (num_workers < 1 || num_workers > kMostWorkers) {
    return InvalidArgument("num_workers is {}; it must be from 1 to {}", num_workers, kMostWorkers);
  }
  if (spec_.need_tf_config && num_workers > slots_at_start) {
    return InvalidArgument(
        "cannot scale to {} workers: the job started with {}, and TF_CONFIG lists only these; "
        "scale "
        "to at most {}",
        num_workers, slots_at_start, slots_at_start);
  }
  quiet_until_.reset();
  for (int index = 0; index < num_workers; ++index) {
    Slot& slot = MakeSlot(Role::kWorker, index);
    slot.row.wanted = true;
    ledger_.Put(slot.row);
  }
  for (auto& [key, slot] : slots_) {
    if (key.first != Role::kWorker || key.second < num_workers || !slot.row.wanted) continue;
    slot.row.wanted = false;
    slot.relaunch_at.reset();
    ledger_.Put(slot.row);
    auto current = replicas_.find(slot.current);
    if (current != replicas_.end() && IsActive(current->second.row.state)) {
      Stop(current->second, now);
    }
  }
  Tick(now);
  return Ok();
}

int ReplicaKeeper::WantedWorkers() const {
  int count = 0;
  for (const auto& [key, slot] : slots_) {
    if (key.first == Role::kWorker && slot.row.wanted) count = std::max(count, key.second + 1);
  }
  return count;
}

size_t ReplicaKeeper::WorkersToLaunch(
    const std::function<bool(const std::string&)>& was_launched) const {
  return static_cast<size_t>(std::ranges::count_if(slots_, [&](const auto& entry) {
    const Slot& slot = entry.second;
    if (slot.row.role != Role::kWorker || !slot.row.wanted || slot.row.succeeded || slot.given_up) {
      return false;
    }
    const Replica* current = Find(slot.current);
    if (current == nullptr || !IsActive(current->row.state)) return true;
    return current->row.state == ReplicaState::kPending && !was_launched(slot.current);
  }));
}

void ReplicaKeeper::LaunchForLeftover(Time now) {
  for (const Role role : {Role::kWorker, Role::kChief}) {
    for (auto& [key, slot] : slots_) {
      if (key.first != role || !slot.row.wanted || slot.given_up) continue;
      slot.row.succeeded = false;
      Refill(slot, now);
      Tick(now);
      return;
    }
  }
}

void ReplicaKeeper::WithdrawPending(Time now) {
  for (auto& [key, slot] : slots_) {
    if (key.first != Role::kWorker || !slot.row.wanted) continue;
    auto current = replicas_.find(slot.current);
    // A replica that is being launched has no reason yet, and is not withdrawn.
    if (current == replicas_.end() || current->second.row.state != ReplicaState::kPending ||
        current->second.row.reason.empty()) {
      continue;
    }
    LOG_INFO("withdrawing {}, which still waits ({}): it is not needed any more", slot.current,
             current->second.row.reason);
    slot.row.wanted = false;
    slot.relaunch_at.reset();
    ledger_.Put(slot.row);
    Stop(current->second, now);
  }
}

void ReplicaKeeper::Resume(int num_workers, bool data_left) {
  for (int index = 0; index < num_workers; ++index) MakeSlot(Role::kWorker, index);
  quiet_until_.reset();
  for (auto& [key, slot] : slots_) {
    slot.row.failures = 0;
    slot.row.idle_lives = 0;
    slot.given_up = false;
    if (key.first == Role::kWorker && num_workers > 0) slot.row.wanted = key.second < num_workers;
    if (data_left) slot.row.succeeded = false;
    ledger_.Put(slot.row);
  }
}

bool ReplicaKeeper::EndTroubled(ReplicaRef ref, AfterEnd after) {
  const auto found = replicas_.find(spec_.ReplicaName(ref.role, ref.id));
  if (found == replicas_.end() || spec_.external_replicas) {
    troubled_.Clear(ref);  // the process was not started by this job
    return false;
  }
  Replica& replica = found->second;
  if (!IsActive(replica.row.state) || replica.stop_asked) return false;
  LOG_WARNING("{} {}; {} it", replica.row.name, troubled_.ReasonOf(ref),
              after == AfterEnd::kRefillSlot ? "replacing" : "stopping");
  if (after == AfterEnd::kSlotSucceeded) {
    Slot& slot = SlotOf(replica);
    slot.row.succeeded = true;
    ledger_.Put(slot.row);
  }
  // A slot that is wanted and has not succeeded is refilled when the exit is reported.
  Stop(replica, last_tick_);
  return true;
}

void ReplicaKeeper::Stop(Replica& replica, Time now) {
  replica.stop_asked = true;
  StopName(replica.row.name, now);
}

void ReplicaKeeper::StopName(const std::string& name, Time now) {
  const PendingStop first{now + kStopRetry.first, kStopRetry.first};
  // A stop that was sent is repeated by RetryStops only.
  if (!stops_.try_emplace(name, first).second) return;
  commands_.emplace_back(StopCommand{name, kStopGrace});
}

void ReplicaKeeper::RetryStops(Time now) {
  for (auto& [name, stop] : stops_) {
    if (now < stop.again_at) continue;
    LOG_WARNING("{} has not exited after it was stopped; stopping it again", name);
    stop.wait = kStopRetry.Following(stop.wait);
    stop.again_at = now + stop.wait;
    commands_.emplace_back(StopCommand{name, kStopGrace});
  }
}

void ReplicaKeeper::StopAll(Time now) {
  stopping_ = true;
  if (spec_.external_replicas) return;
  for (auto& [name, replica] : replicas_) {
    // RetryStops repeats stops that were sent.
    if (IsActive(replica.row.state) && !stops_.contains(name)) Stop(replica, now);
  }
}

void ReplicaKeeper::OnSilent(ReplicaRef replica) {
  auto found = replicas_.find(spec_.ReplicaName(replica.role, replica.id));
  if (found != replicas_.end()) found->second.silent = true;
}

void ReplicaKeeper::OnServerHeard(int index, Time now) {
  auto slot = slots_.find({Role::kPs, index});
  if (slot == slots_.end()) return;
  auto found = replicas_.find(slot->second.current);
  if (found != replicas_.end()) found->second.heard_at = now;
}

void ReplicaKeeper::OnNode(const std::string& name, bool lost, Time now) {
  auto found = replicas_.find(name);
  if (found == replicas_.end() || !IsActive(found->second.row.state)) return;
  std::optional<Time>& lost_at = found->second.node_lost_at;
  if (lost == lost_at.has_value()) return;
  if (lost) {
    lost_at = now;
    without_node_.insert(name);
    LOG_WARNING("{}: the cluster has lost contact with its node", name);
  } else {
    lost_at.reset();
    without_node_.erase(name);
    LOG_INFO("{}: the cluster has contact with its node again", name);
  }
}

std::vector<std::string> ReplicaKeeper::LostWithTheirNodes(
    const std::function<bool(ReplicaRef)>& has_session, Time now) const {
  std::vector<std::string> lost;
  for (const std::string& name : without_node_) {
    const Replica& replica = replicas_.at(name);
    if (has_session(replica.row.replica)) continue;
    const bool answers = now - replica.heard_at < kServerSilence;
    if (replica.row.replica.role == Role::kPs && spec_.own_ps && answers) continue;
    // A replica without a session is silent, has left, or never joins (a TensorFlow ps). The last
    // two cannot be heard, so only the time since the loss of the node counts for them.
    if (replica.silent || now - *replica.node_lost_at >= kNodeLostFor) lost.push_back(name);
  }
  return lost;
}

bool ReplicaKeeper::TrainingEnded() const {
  if (spec_.external_replicas) return false;  // the TFJob decides
  return synced_ && std::all_of(slots_.begin(), slots_.end(), [](const auto& entry) {
           const Slot& slot = entry.second;
           const bool trains = slot.row.role == Role::kWorker || slot.row.role == Role::kChief;
           return !trains || !slot.row.wanted || slot.row.succeeded || slot.given_up;
         });
}

bool ReplicaKeeper::AnyRunning() const {
  if (spec_.external_replicas) return false;  // none that the job could stop
  return !stops_.empty() || std::any_of(replicas_.begin(), replicas_.end(), [](const auto& entry) {
    return IsActive(entry.second.row.state);
  });
}

bool ReplicaKeeper::AnyRunning(Role role) const {
  return std::any_of(replicas_.begin(), replicas_.end(), [&](const auto& entry) {
    return entry.second.row.replica.role == role && IsActive(entry.second.row.state);
  });
}

bool ReplicaKeeper::ChiefSucceeded() const {
  auto chief = slots_.find({Role::kChief, 0});
  return chief != slots_.end() && chief->second.row.succeeded;
}

bool ReplicaKeeper::ChiefExpected() const {
  if (spec_.external_replicas) return true;  // only counts if a chief has read the data
  auto chief = slots_.find({Role::kChief, 0});
  return chief != slots_.end() && chief->second.row.wanted && !chief->second.row.succeeded &&
         !chief->second.given_up;
}

std::vector<ReplicaRef> ReplicaKeeper::Running(Role role) const {
  std::vector<ReplicaRef> running;
  for (const auto& [name, replica] : replicas_) {
    if (replica.row.replica.role == role && replica.row.state == ReplicaState::kRunning) {
      running.push_back(replica.row.replica);
    }
  }
  return running;
}

std::vector<Command> ReplicaKeeper::TakeCommands() { return std::exchange(commands_, {}); }

}  // namespace edl::master
