#include "master/parameter_keeper.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/log.h"

namespace edl::master {
namespace {

using nlohmann::json;

// A server that is away, or was when it was asked, and may be back.
bool MayPass(const Status& status) {
  return status.code() == Code::kUnavailable || status.code() == Code::kDeadlineExceeded ||
         status.code() == Code::kAborted || status.code() == Code::kFailedPrecondition;
}

// What a checkpoint says that cannot be used, whoever reads it.
bool IsDamage(const Status& status) {
  return status.code() == Code::kDataLoss || status.code() == Code::kNotFound ||
         status.code() == Code::kInvalidArgument;
}

}  // namespace

Status ParameterKeeper::Load(const std::string& saved, uint64_t new_ledger, Time now) {
  if (!enabled()) return Ok();
  slots_.resize(static_cast<size_t>(spec_.num_ps));
  next_save_at_ = now;
  ledger_id_ = new_ledger;
  dirty_ = saved.empty();
  if (!saved.empty()) {
    const json in = json::parse(saved, nullptr, false);
    if (!in.is_object()) return DataLoss("what the ledger says of parameters cannot be read");
    ledger_id_ = in.value("ledger", uint64_t{0});
    ps_epoch_ = in.value("ps_epoch", uint64_t{0});
    next_save_ = in.value("next_save", int64_t{1});
    usable_ = in.value("usable", size_t{0});
    for (const json& server : in.value("served", json::array())) {
      served_.push_back(
          {server.value("replica", int64_t{-1}), server.value("incarnation", uint64_t{0})});
    }
    for (const json& checkpoint : in.value("checkpoints", json::array())) {
      EDL_ASSIGN_OR_RETURN(job::ShardSet covered,
                           job::ShardSet::FromJson(checkpoint.value("covered", json()).dump()));
      checkpoints_.push_back({.name = checkpoint.value("name", ""),
                              .users = checkpoint.value("users", false),
                              .version = checkpoint.value("version", int64_t{0}),
                              .covered = std::move(covered)});
    }
    if (!checkpoints_.empty()) version_at_save_ = checkpoints_.back().version;
  }
  // With another number of servers every bucket may have another home.
  if (served_.size() != slots_.size()) served_.assign(slots_.size(), {});
  UpdateRule();
  return Ok();
}

void ParameterKeeper::Flush() {
  if (!dirty_) return;
  json out = {{"ledger", ledger_id_},
              {"ps_epoch", ps_epoch_},
              {"next_save", next_save_},
              {"usable", usable_}};
  out["served"] = json::array();
  for (const Served& server : served_) {
    out["served"].push_back({{"replica", server.replica}, {"incarnation", server.incarnation}});
  }
  out["checkpoints"] = json::array();
  for (const Checkpoint& checkpoint : checkpoints_) {
    out["checkpoints"].push_back({{"name", checkpoint.name},
                                  {"users", checkpoint.users},
                                  {"version", checkpoint.version},
                                  {"covered", json::parse(checkpoint.covered.ToJson())}});
  }
  ledger_.PutMeta("parameters", out.dump());
  dirty_ = false;
}

void ParameterKeeper::UpdateRule() {
  dispatcher_.set_parameter_rule(
      {.ledger = ledger_id_, .ps_epoch = ps_epoch_, .durable = IsDurable()});
}

job::ShardSet ParameterKeeper::DoneShards() const {
  job::ShardSet done = dispatcher_.DoneShards();
  done.ledger = ledger_id_;
  return done;
}

bool ParameterKeeper::IsDurable() const {
  if (!dispatcher_.TrainingComplete()) return false;
  if (!can_save()) return true;
  return !checkpoints_.empty() && checkpoints_.back().covered == DoneShards();
}

std::vector<uint64_t> ParameterKeeper::Incarnations() const {
  std::vector<uint64_t> all;
  for (const Served& server : served_) all.push_back(server.incarnation);
  return all;
}

void ParameterKeeper::Tick(const std::vector<int64_t>& running, Time now) {
  if (!enabled() || failure_.has_value()) return;
  Observe(running);
  if (phase_ == Phase::kGathering) {
    Greet(now);
    const bool all_known = std::ranges::all_of(
        slots_, [](const Slot& slot) { return slot.replica >= 0 && slot.incarnation != 0; });
    if (all_known) Decide(now);
  }
  if (phase_ == Phase::kServing && !saving_.has_value() && SaveIsDue(now)) BeginSave(now);
  UpdateRule();
}

void ParameterKeeper::Observe(const std::vector<int64_t>& running) {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].replica == running[i]) continue;
    if (slots_[i].replica >= 0 && phase_ == Phase::kServing) {
      LOG_WARNING("parameter server {} is gone: workers wait until it is restored", i);
    }
    slots_[i] = {.replica = running[i]};
    phase_ = Phase::kGathering;
  }
}

void ParameterKeeper::Greet(Time now) {
  for (size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    if (slot.replica < 0 || slot.incarnation != 0 || slot.greet_number != 0) continue;
    if (now < slot.greet_at) continue;
    slot.greet_number = ++last_number_;
    commands_.emplace_back(GreetServer{slot.greet_number, static_cast<int>(i)});
  }
}

void ParameterKeeper::OnGreeted(uint64_t number, const Result<uint64_t>& incarnation, Time now) {
  for (size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    if (slot.greet_number != number) continue;
    slot.greet_number = 0;
    slot.greet_at = now + kGreetEvery;
    if (!incarnation.ok()) continue;
    // A dead one that still answers, while its successor does not yet.
    const bool is_dead =
        served_[i].replica != slot.replica && served_[i].incarnation == *incarnation;
    if (!is_dead) slot.incarnation = *incarnation;
  }
}

void ParameterKeeper::Decide(Time now) {
  RestoreServers restore;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const bool is_known =
        served_[i].replica == slots_[i].replica && served_[i].incarnation == slots_[i].incarnation;
    if (!is_known) restore.servers.push_back({static_cast<int>(i), slots_[i].incarnation});
  }
  if (restore.servers.empty()) {
    phase_ = Phase::kServing;
    Serve();
    return;
  }
  if (ps_epoch_ > 0 && !can_save()) {
    failure_ = fmt::format(
        "parameter server {} was lost, and with --recovery_checkpoint_secs=0 nothing of it was "
        "saved",
        restore.servers.front().index);
    return;
  }
  // Nobody may count on what a server had once its parameters change behind the workers' backs.
  ++ps_epoch_;
  dirty_ = true;
  job::ShardSet covered;
  if (!checkpoints_.empty()) {
    restore.checkpoint = checkpoints_.back().name;
    covered = checkpoints_.back().covered;
  } else if (!spec_.checkpoint_dir_for_init.empty()) {
    restore.checkpoint = spec_.checkpoint_dir_for_init;
    restore.of_another_job = true;
  }
  const int64_t reopened = dispatcher_.Reopen(covered, now);
  if (ps_epoch_ > 1) {
    LOG_INFO(
        "parameter servers, epoch {}: {} of {} restored from {}; {} shard(s) are trained again",
        ps_epoch_, restore.servers.size(), slots_.size(),
        restore.checkpoint.empty() ? "nothing" : restore.checkpoint, reopened);
  }
  restore.number = restore_number_ = ++last_number_;
  restore.ps_epoch = ps_epoch_;
  phase_ = Phase::kRestoring;
  commands_.emplace_back(std::move(restore));
}

void ParameterKeeper::OnRestored(uint64_t number, const Status& status, Time now) {
  if (phase_ != Phase::kRestoring || number != restore_number_) return;
  if (status.ok()) {
    for (size_t i = 0; i < slots_.size(); ++i) {
      served_[i] = {slots_[i].replica, slots_[i].incarnation};
    }
    dirty_ = true;
    phase_ = Phase::kServing;
    next_save_at_ = now + std::chrono::seconds(spec_.recovery_checkpoint_secs);
    Serve();
    return;
  }
  phase_ = Phase::kGathering;
  if (MayPass(status)) {
    LOG_WARNING("restoring parameter servers: {}; trying again", status.message());
    for (Slot& slot : slots_) {
      slot.incarnation = 0;
      slot.greet_at = now + kGreetEvery;
    }
  } else if (IsDamage(status) && usable_ > 1) {
    LOG_ERROR("checkpoint {} cannot be used: {}; taking the one before it",
              checkpoints_.back().name, status.message());
    checkpoints_.pop_back();
    --usable_;
    dirty_ = true;
  } else {
    failure_ = fmt::format("parameter servers cannot be restored: {}", status.message());
  }
}

void ParameterKeeper::Serve() {
  const bool any = !checkpoints_.empty();
  ServeAll serve{.ps_epoch = ps_epoch_,
                 .incarnations = Incarnations(),
                 .may_push = any || !can_save(),
                 .floor = dispatcher_.floor().value()};
  for (const Slot& slot : slots_) {
    serve.released.push_back(released_ || slot.released || !can_save());
  }
  if (any) {
    serve.covered = checkpoints_[checkpoints_.size() - usable_].covered;
  }
  commands_.emplace_back(std::move(serve));
}

void ParameterKeeper::Release() {
  if (!enabled()) return;
  released_ = true;
  if (phase_ == Phase::kServing) Serve();
}

bool ParameterKeeper::IsStepDue() const {
  const int64_t steps = spec_.checkpoint_steps;
  return steps > 0 && dispatcher_.counters().version / steps > version_at_save_ / steps;
}

bool ParameterKeeper::SaveIsDue(Time now) const {
  if (!can_save()) return false;
  if ((dispatcher_.TrainingComplete() && !IsDurable()) || IsStepDue() || save_wanted_) {
    return failed_saves_ == 0 || now >= next_save_at_;
  }
  if (checkpoints_.empty()) {
    // Before the first push: whoever opens a shard has declared its parameters and given them their
    // values.
    const bool somebody_waits =
        std::ranges::any_of(slots_, [](const Slot& slot) { return slot.state.opens_waiting > 0; });
    return somebody_waits && (failed_saves_ == 0 || now >= next_save_at_);
  }
  const bool changed = dispatcher_.counters().version != version_at_save_ ||
                       dispatcher_.counters().next_lease != lease_at_save_;
  return changed && now >= next_save_at_;
}

void ParameterKeeper::BeginSave(Time now) {
  const int64_t version = dispatcher_.counters().version;
  saving_ =
      Saving{.number = ++last_number_,
             .ps_epoch = ps_epoch_,
             .checkpoint = {.name = fmt::format("version-{}.{}", version, next_save_++),
                            .users = IsStepDue(),
                            .version = version,
                            // Taken before the first lane cuts: each of these is in all parts.
                            .covered = DoneShards()}};
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].state.leaving) saving_->leaving.push_back(i);
  }
  save_wanted_ = false;
  lease_at_save_ = dispatcher_.counters().next_lease;
  next_save_at_ = now + std::chrono::seconds(spec_.recovery_checkpoint_secs);
  dirty_ = true;
  commands_.emplace_back(SaveAll{.number = saving_->number,
                                 .name = saving_->checkpoint.name,
                                 .ps_epoch = ps_epoch_,
                                 .incarnations = Incarnations(),
                                 .version = version,
                                 .covered = saving_->checkpoint.covered,
                                 .flush = dispatcher_.TrainingComplete()});
}

void ParameterKeeper::OnSaved(uint64_t number, const Status& status, Time now) {
  if (!saving_.has_value() || saving_->number != number) return;
  Saving saved = std::move(*saving_);
  saving_.reset();
  if (status.ok() && saved.ps_epoch == ps_epoch_) {
    failed_saves_ = 0;
    version_at_save_ = saved.checkpoint.version;
    checkpoints_.push_back(std::move(saved.checkpoint));
    for (const size_t server : saved.leaving) slots_[server].released = true;
    usable_ = std::min(usable_ + 1, kUsable);
    dirty_ = true;
    Prune();
    // A server that is away is told when it is back.
    if (phase_ == Phase::kServing) Serve();
    return;
  }
  commands_.emplace_back(DropCheckpoint{saved.checkpoint.name});
  if (saved.ps_epoch != ps_epoch_) return;  // void: a server was lost meanwhile
  ++failed_saves_;
  next_save_at_ = now + kSaveAgain;
  LOG_WARNING("checkpoint {} failed: {}; trying again", saved.checkpoint.name, status.message());
  // A server that is away is waited for: it comes back, or its successor is restored.
  if (!MayPass(status) && dispatcher_.TrainingComplete() && failed_saves_ >= kMostFailedSaves) {
    failure_ =
        fmt::format("all is trained, and the parameters cannot be saved: {}", status.message());
  }
}

void ParameterKeeper::Prune() {
  const int64_t keep = spec_.keep_checkpoint_max;
  int64_t users = std::ranges::count_if(checkpoints_, &Checkpoint::users);
  for (size_t i = 0; i + kUsable < checkpoints_.size();) {
    const bool users_own = checkpoints_[i].users;
    if (users_own && (keep <= 0 || users <= keep)) {
      ++i;
      continue;
    }
    if (users_own) --users;
    commands_.emplace_back(DropCheckpoint{checkpoints_[i].name});
    checkpoints_.erase(checkpoints_.begin() + static_cast<ptrdiff_t>(i));
  }
}

void ParameterKeeper::OnState(const job::ServerView& state) {
  const auto index = static_cast<size_t>(state.index);
  if (index >= slots_.size()) return;
  Slot& slot = slots_[index];
  if (slot.incarnation == state.incarnation) {
    if (state.leaving && !slot.state.leaving) {
      LOG_INFO("parameter server {} is about to leave: saving what it has", index);
      save_wanted_ = true;
    }
    slot.state = state;
  } else if (phase_ == Phase::kServing) {
    // It was a dead one that answered before: at its address there is its successor now.
    slot.incarnation = 0;
    phase_ = Phase::kGathering;
  }
}

std::vector<job::ServerView> ParameterKeeper::View() const {
  std::vector<job::ServerView> all;
  for (size_t i = 0; i < slots_.size(); ++i) {
    all.push_back(slots_[i].state);
    all.back().index = static_cast<int>(i);
  }
  return all;
}

}  // namespace edl::master
