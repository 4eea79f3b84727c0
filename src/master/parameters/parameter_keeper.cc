#include "master/parameters/parameter_keeper.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/backoff.h"
#include "base/json.h"
#include "base/log.h"
#include "base/retry.h"
#include "checkpoint/checkpoint_folder.h"
#include "master/ledger/damaged_entry.h"

namespace edl::master {
namespace {

using nlohmann::json;

// Whether a restore failed because of the checkpoint itself, so that no server can use it. After
// any other failure (a mount, permissions, memory) the checkpoint may be good.
bool IsDamage(const Status& status) {
  return status.code() == Code::kDataLoss || status.code() == Code::kNotFound;
}

// The number of damaged checkpoints that are kept for inspection.
constexpr size_t kMostBad = 2;

Duration RestoreBackoff(int failures) {
  constexpr BackoffLimits kLimits{.first = ParameterKeeper::kProbeInterval,
                                  .longest = ParameterKeeper::kRestoreBackoff};
  return kLimits.After(std::max(failures, 1));
}

int64_t WholeSeconds(Duration time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time).count();
}

}  // namespace

Status ParameterKeeper::Load(const std::string& saved, LedgerId new_ledger, Time now) {
  if (!enabled()) return Ok();
  slots_.resize(static_cast<size_t>(spec_.num_ps));
  next_save_at_ = now;
  ledger_id_ = new_ledger;
  dirty_ = saved.empty();
  lanes_ = spec_.ps_lanes > 0 ? spec_.ps_lanes : spec_.default_ps_lanes;
  if (!saved.empty()) EDL_RETURN_IF_ERROR(LoadSaved(saved));
  // With another number of servers, any bucket may belong to another lane.
  if (served_.size() != slots_.size()) served_.assign(slots_.size(), {});
  // IsDurable needs the rule, so the rule is set before its value is known.
  dispatcher_.set_parameter_rule({.ledger = ledger_id_, .ps_epoch = ps_epoch_});
  UpdateRule();
  return Ok();
}

Status ParameterKeeper::LoadSaved(const std::string& saved) {
  const json in = ReadJson(saved);
  if (!in.is_object()) return DamagedEntry("parameters", "expected a JSON object");
  ledger_id_ = LedgerId(in.value("ledger", uint64_t{0}));
  ps_epoch_ = PsEpoch(in.value("ps_epoch", uint64_t{0}));
  next_save_ = in.value("next_save", int64_t{1});
  usable_ = in.value("usable", size_t{0});
  for (const json& server : in.value("served", json::array())) {
    served_.push_back({server.value("replica", int64_t{-1}),
                       PsIncarnation(server.value("incarnation", uint64_t{0}))});
  }
  for (const json& checkpoint : in.value("checkpoints", json::array())) {
    EDL_ASSIGN_OR_RETURN(checkpoint::ShardSet covered,
                         checkpoint::ShardSet::FromJson(Dump(checkpoint.value("covered", json()))));
    checkpoints_.push_back({.name = checkpoint.value("name", ""),
                            .users = checkpoint.value("users", false),
                            .version = checkpoint.value("version", int64_t{0}),
                            .covered = std::move(covered)});
  }
  for (const json& bad : in.value("bad", json::array())) {
    bad_.push_back({bad.value("name", ""), bad.value("why", "")});
  }
  if (!checkpoints_.empty()) version_at_save_ = checkpoints_.back().version;
  const int64_t lanes = in.value("lanes", int64_t{0});
  if (lanes <= 0 || lanes == lanes_) {
    dirty_ = lanes != lanes_;
  } else if (spec_.ps_lanes > 0) {
    // --resume has changed --ps_lanes, so any bucket may belong to another lane.
    served_.clear();
    dirty_ = true;
  } else {
    lanes_ = lanes;
  }
  return Ok();
}

void ParameterKeeper::Flush() {
  if (!dirty_) return;
  json out = {{"ledger", ledger_id_.value()},
              {"ps_epoch", ps_epoch_.value()},
              {"lanes", lanes_},
              {"next_save", next_save_},
              {"usable", usable_}};
  out["served"] = json::array();
  for (const Served& server : served_) {
    out["served"].push_back(
        {{"replica", server.replica}, {"incarnation", server.incarnation.value()}});
  }
  out["checkpoints"] = json::array();
  for (const Checkpoint& checkpoint : checkpoints_) {
    out["checkpoints"].push_back({{"name", checkpoint.name},
                                  {"users", checkpoint.users},
                                  {"version", checkpoint.version},
                                  {"covered", ReadJson(checkpoint.covered.ToJson())}});
  }
  out["bad"] = json::array();
  for (const BadCheckpoint& bad : bad_) {
    out["bad"].push_back({{"name", bad.name}, {"why", bad.why}});
  }
  ledger_.PutMeta("parameters", Dump(out));
  dirty_ = false;
}

void ParameterKeeper::UpdateRule() {
  dispatcher_.set_parameter_rule(
      {.ledger = ledger_id_, .ps_epoch = ps_epoch_, .durable = IsDurable()});
}

checkpoint::ShardSet ParameterKeeper::DoneShards() const {
  checkpoint::ShardSet done = dispatcher_.DoneShards();
  done.ledger = ledger_id_;
  return done;
}

bool ParameterKeeper::IsDurable() const {
  if (!dispatcher_.TrainingComplete()) return false;
  if (!can_save()) return true;
  return !checkpoints_.empty() && checkpoints_.back().covered == DoneShards();
}

std::vector<PsIncarnation> ParameterKeeper::Incarnations() const {
  std::vector<PsIncarnation> all;
  for (const Served& server : served_) all.push_back(server.incarnation);
  return all;
}

void ParameterKeeper::Tick(const std::vector<int64_t>& running, Time now) {
  if (!enabled() || failure_.has_value()) return;
  Observe(running, now);
  CheckSilence(now);
  if (!orphans_collected_) CollectRest();
  if (phase_ == Phase::kGathering) {
    Probe(now);
    const bool all_known = std::ranges::all_of(slots_, [](const Slot& slot) {
      return slot.replica >= 0 && slot.incarnation != PsIncarnation();
    });
    if (all_known) Decide(now);
  }
  if (phase_ == Phase::kServing && !saving_.has_value() && SaveIsDue(now)) BeginSave(now);
  UpdateRule();
}

void ParameterKeeper::Observe(const std::vector<int64_t>& running, Time now) {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].replica == running[i]) continue;
    if (slots_[i].replica >= 0 && phase_ == Phase::kServing) {
      LOG_WARNING("parameter server {} was lost; workers wait until it is restored", i);
    }
    slots_[i] = {.replica = running[i], .heard_at = now};
    phase_ = Phase::kGathering;
    // Without this server the save would fail, but perhaps only after a long time.
    if (saving_.has_value()) commands_.emplace_back(CancelSave{saving_->number});
  }
}

void ParameterKeeper::Heard(Slot& slot, Time now) {
  slot.heard_at = now;
  slot.has_answered = true;
  slot.trouble.clear();
}

Duration ParameterKeeper::SilenceAllowed(const Slot& slot) const {
  const Duration allowed = std::chrono::seconds(spec_.ps_silence_secs);
  return slot.has_answered ? allowed : std::max(allowed, kFirstAnswer);
}

// Detects servers that the backend does not report as exited: stopped processes, crashed machines,
// partitioned networks.
void ParameterKeeper::CheckSilence(Time now) {
  if (spec_.ps_silence_secs <= 0) return;
  for (size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    if (slot.replica < 0 || now < slot.replace_at) continue;
    if (now - slot.heard_at <= SilenceAllowed(slot)) continue;
    // The request to replace it is repeated while it runs, because a request may be lost.
    slot.replace_at = now + std::chrono::seconds(spec_.ps_silence_secs);
    silent_.push_back({slot.replica, ReasonOf(i, now)});
  }
}

std::string ParameterKeeper::ReasonOf(size_t index, Time now) const {
  const Slot& slot = slots_[index];
  if (slot.replica < 0) return "does not run";
  const Duration silent = now - slot.heard_at;
  if (silent > kShowSilence) {
    return slot.trouble.empty()
               ? fmt::format("no answer for {} s", WholeSeconds(silent))
               : fmt::format("no good answer for {} s: {}", WholeSeconds(silent), slot.trouble);
  }
  if (phase_ == Phase::kRestoring) return fmt::format("restoring {}", restoring_);
  if (phase_ == Phase::kGathering && !restore_trouble_.empty()) return restore_trouble_;
  return "";
}

void ParameterKeeper::Probe(Time now) {
  for (size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    if (slot.replica < 0 || slot.incarnation != PsIncarnation() ||
        slot.probe_number != PsCommandId())
      continue;
    if (now < slot.probe_at) continue;
    slot.probe_number = last_number_ = last_number_.Next();
    commands_.emplace_back(ProbeServer{slot.probe_number, static_cast<int>(i)});
  }
}

void ParameterKeeper::OnProbed(PsCommandId number, const Result<ProbeReply>& reply, Time now) {
  for (size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    if (slot.probe_number != number) continue;
    slot.probe_number = {};
    slot.probe_at = std::max(slot.probe_at, now + kProbeInterval);
    if (!reply.ok()) {
      slot.trouble = slot.has_answered ? "" : reply.status().message();
      continue;
    }
    if (reply->lanes != lanes_) {
      slot.trouble =
          fmt::format("it has {} lanes, and this job's servers have {}", reply->lanes, lanes_);
      continue;
    }
    // The previous process of this slot still answers, and its successor does not yet.
    const bool is_predecessor =
        served_[i].replica != slot.replica && served_[i].incarnation == reply->incarnation;
    if (is_predecessor) continue;
    slot.incarnation = reply->incarnation;
    Heard(slot, now);
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
  if (ps_epoch_ != PsEpoch() && !can_save() && !read_only()) {
    failure_ = fmt::format(
        "parameter server {} was lost, and with --recovery_checkpoint_secs=0 its parameters were "
        "not saved",
        restore.servers.front().index);
    return;
  }
  // A new epoch invalidates reports and pushes that rely on parameters from before the restore.
  ps_epoch_ = ps_epoch_.Next();
  dirty_ = true;
  checkpoint::ShardSet covered;
  if (!checkpoints_.empty()) {
    restore.checkpoint = checkpoints_.back().name;
    covered = checkpoints_.back().covered;
  } else if (!spec_.checkpoint_dir_for_init.empty()) {
    restore.checkpoint = spec_.checkpoint_dir_for_init;
    restore.of_another_job = true;
  }
  const int64_t reopened = dispatcher_.Reopen(covered, now);
  if (ps_epoch_ > PsEpoch(1)) {
    LOG_INFO(
        "parameter servers, epoch {}: {} of {} restored from {}; {} shard(s) are trained again",
        ps_epoch_, restore.servers.size(), slots_.size(),
        restore.checkpoint.empty() ? "nothing" : restore.checkpoint, reopened);
  }
  // A save in progress belongs to the previous epoch.
  if (saving_.has_value()) commands_.emplace_back(CancelSave{saving_->number});
  restoring_ = restore.checkpoint.empty() ? "nothing" : restore.checkpoint;
  restore.number = restore_number_ = last_number_ = last_number_.Next();
  restore.ps_epoch = ps_epoch_;
  phase_ = Phase::kRestoring;
  commands_.emplace_back(std::move(restore));
}

void ParameterKeeper::OnRestored(PsCommandId number, const Status& status, Time now) {
  if (phase_ != Phase::kRestoring || number != restore_number_) return;
  if (status.ok()) {
    for (size_t i = 0; i < slots_.size(); ++i) {
      served_[i] = {slots_[i].replica, slots_[i].incarnation};
    }
    dirty_ = true;
    failed_restores_ = 0;
    restore_failing_since_.reset();
    restore_trouble_.clear();
    phase_ = Phase::kServing;
    next_save_at_ = now + std::chrono::seconds(spec_.recovery_checkpoint_secs);
    Serve();
    return;
  }
  phase_ = Phase::kGathering;
  OnRestoreFailed(status, now);
}

void ParameterKeeper::OnRestoreFailed(const Status& status, Time now) {
  if (IsDamage(status)) {
    if (usable_ <= 1) {
      failure_ = fmt::format("cannot restore the parameter servers: {}", status.message());
      return;
    }
    MarkNewestBad(status.message());
    return;
  }
  ++failed_restores_;
  restore_trouble_ = status.message();
  if (!IsUnreachableOrReplaced(status) && !restore_failing_since_.has_value())
    restore_failing_since_ = now;
  if (!IsUnreachableOrReplaced(status) && now - *restore_failing_since_ >= kRestoreTimeout) {
    failure_ = fmt::format(
        "cannot restore the parameter servers: {}. The checkpoint {} is kept: when it can be read, "
        "continue with `elasticdl train --resume`",
        status.message(), restoring_);
    return;
  }
  LOG_WARNING("cannot restore the parameter servers: {}; retrying", status.message());
  for (Slot& slot : slots_) {
    slot.incarnation = {};
    slot.probe_at = now + RestoreBackoff(failed_restores_);
  }
}

void ParameterKeeper::MarkNewestBad(const std::string& why) {
  LOG_ERROR("checkpoint {} cannot be used: {}; using the one before it", checkpoints_.back().name,
            why);
  bad_.push_back({checkpoints_.back().name, why});
  checkpoints_.pop_back();
  --usable_;
  dirty_ = true;
  if (bad_.size() <= kMostBad) return;
  commands_.emplace_back(DropCheckpoint{bad_.front().name});
  bad_.erase(bad_.begin());
}

// Removes the folders of saves that this ledger began and did not complete. Each is as large as a
// checkpoint.
void ParameterKeeper::CollectRest() {
  orphans_collected_ = true;
  if (!can_save()) return;
  CollectOrphans collect{.ledger = ledger_id_, .below = next_save_};
  for (const Checkpoint& checkpoint : checkpoints_) collect.keep.push_back(checkpoint.name);
  for (const BadCheckpoint& bad : bad_) collect.keep.push_back(bad.name);
  if (saving_.has_value()) collect.keep.push_back(saving_->checkpoint.name);
  commands_.emplace_back(std::move(collect));
}

void ParameterKeeper::Serve() {
  const bool any = !checkpoints_.empty();
  ServeAll serve{.ps_epoch = ps_epoch_,
                 .incarnations = Incarnations(),
                 .may_push = any || !can_save(),
                 .floor = dispatcher_.floor()};
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
    // The first checkpoint is taken before the first push. A worker that opens a shard has declared
    // the parameters and put their values.
    const bool any_open_waits =
        std::ranges::any_of(slots_, [](const Slot& slot) { return slot.state.opens_waiting > 0; });
    return any_open_waits && (failed_saves_ == 0 || now >= next_save_at_);
  }
  const bool changed = dispatcher_.counters().version != version_at_save_ ||
                       dispatcher_.counters().next_lease != lease_at_save_;
  return changed && now >= next_save_at_;
}

void ParameterKeeper::BeginSave(Time now) {
  const int64_t version = dispatcher_.counters().version;
  saving_ = Saving{
      .number = last_number_ = last_number_.Next(),
      .ps_epoch = ps_epoch_,
      .checkpoint = {.name = checkpoint::CheckpointName{version, ledger_id_, next_save_++}.ToText(),
                     .users = IsStepDue(),
                     .version = version,
                     // Read before any lane takes its snapshot, so all parts have these shards.
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

void ParameterKeeper::OnSaved(PsCommandId number, const Status& status, Time now) {
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
    CollectRest();
    // Otherwise servers learn of it when they are served again.
    if (phase_ == Phase::kServing) Serve();
    return;
  }
  commands_.emplace_back(DropCheckpoint{saved.checkpoint.name});
  if (saved.ps_epoch != ps_epoch_) return;  // not a failure: a server was lost meanwhile
  ++failed_saves_;
  next_save_at_ = now + kSaveAgain;
  LOG_WARNING("cannot save checkpoint {}: {}; retrying", saved.checkpoint.name, status.message());
  // An unreachable server does not count: it answers again, or its successor is restored.
  if (!IsUnreachableOrReplaced(status) && dispatcher_.TrainingComplete() &&
      failed_saves_ >= kMostFailedSaves) {
    failure_ = fmt::format("all data is trained, but the parameters cannot be saved: {}",
                           status.message());
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

void ParameterKeeper::OnState(const job::ServerView& state, Time now) {
  const auto index = static_cast<size_t>(state.index);
  if (index >= slots_.size()) return;
  Slot& slot = slots_[index];
  if (slot.incarnation == state.incarnation) {
    Heard(slot, now);
    if (state.leaving && !slot.state.leaving) {
      LOG_INFO("parameter server {} is about to exit; saving its parameters", index);
      WantSave();
    }
    slot.state = state;
  } else if (phase_ == Phase::kServing) {
    // The process that answered the probe has exited, and its successor answers now.
    slot.incarnation = {};
    phase_ = Phase::kGathering;
  }
}

void ParameterKeeper::OnAlive(int index, PsIncarnation incarnation, Time now) {
  const auto place = static_cast<size_t>(index);
  if (place >= slots_.size() || slots_[place].incarnation != incarnation) return;
  // A serving server has to report its state to count as alive. A server that is restored may be
  // too busy for that.
  if (phase_ != Phase::kServing) Heard(slots_[place], now);
}

std::vector<job::ServerView> ParameterKeeper::View(Time now) const {
  std::vector<job::ServerView> all;
  for (size_t i = 0; i < slots_.size(); ++i) {
    all.push_back(slots_[i].state);
    all.back().index = static_cast<int>(i);
    all.back().reason = ReasonOf(i, now);
  }
  return all;
}

}  // namespace edl::master
