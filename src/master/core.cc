#include "master/core.h"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "master/ledger/damaged_entry.h"
#include "master/ledger/ledger_report.h"
#include "master/model/evaluation.h"
#include "master/replicas/local_address.h"
#include "master/replicas/success_rule.h"
#include "master/shards/permutation.h"

namespace edl::master {
namespace {

using job::JobState;
using nlohmann::json;

double Seconds(WallTime time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

// How long after it was found silent or hung a replica is replaced, or, when all data is done,
// ended. The latter is longer, because a program may hold Python's lock while it writes its model.
constexpr std::chrono::seconds kReplacedAfter{30};
constexpr std::chrono::seconds kEndedAfter{300};
// How long the end of the job waits for a last checkpoint that is not needed for correctness.
constexpr std::chrono::seconds kSaveAtMost{60};

// The number of the ledger: from the ledger, or from the state of the parameter servers, or
// `fresh`.
LedgerId LedgerIdOf(const std::string& saved, const std::string& parameters, uint64_t fresh) {
  uint64_t number = 0;
  std::from_chars(saved.data(), saved.data() + saved.size(), number);
  if (number != 0) return LedgerId(number);
  const json in = ReadJson(parameters);
  if (in.is_object()) number = in.value("ledger", uint64_t{0});
  return LedgerId(number != 0 ? number : fresh);
}

}  // namespace

Core::Core(Ledger& ledger, const job::JobSpec& spec, uint64_t seed)
    : ledger_(ledger),
      spec_(spec),
      sessions_(ledger),
      dispatcher_(ledger, sessions_, seed),
      sync_(ledger),
      rendezvous_(ledger),
      recent_calls_(ledger),
      keeper_(ledger, spec),
      parameters_(ledger, dispatcher_, spec),
      model_(ledger, dispatcher_, spec),
      recorder_(ledger, dispatcher_, keeper_, parameters_),
      context_{.sessions = sessions_,
               .dispatcher = dispatcher_,
               .sync = sync_,
               .staleness = staleness_,
               .rendezvous = rendezvous_,
               .keeper = keeper_,
               .model = model_,
               .progress = progress_,
               .outbox = outbox_,
               .spec = spec,
               .now = now_},
      master_api_(context_),
      compat_api_(context_),
      seed_(seed) {
  dispatcher_.set_fault_tolerant(spec.task_fault_tolerance);
}

Status Core::Load(Time now, WallTime wall_now) {
  now_ = real_now_ = now;
  wall_now_ = wall_now;
  EDL_ASSIGN_OR_RETURN(const auto meta, ledger_.Meta());
  const auto get = [&](const char* key) {
    auto found = meta.find(key);
    return found == meta.end() ? std::string() : found->second;
  };
  Dispatcher::Counters counters;
  uint64_t next_incarnation = 1;
  if (const std::string saved = get("counters"); !saved.empty()) {
    const json in = ReadJson(saved);
    if (in.is_discarded()) return DamagedEntry("counters", "it is not JSON");
    counters = {.next_lease = in.value("next_lease", uint64_t{1}),
                .next_task = in.value("next_task", 1),
                .next_dataset = in.value("next_dataset", int64_t{1}),
                .version = in.value("version", int64_t{0})};
    next_incarnation = in.value("next_incarnation", uint64_t{1});
  }
  EDL_RETURN_IF_ERROR(sessions_.Load(next_incarnation, now_));
  EDL_RETURN_IF_ERROR(dispatcher_.Load(counters, now_));
  EDL_RETURN_IF_ERROR(sync_.Load(get("sync")));
  EDL_RETURN_IF_ERROR(rendezvous_.Load(get("rendezvous")));
  EDL_RETURN_IF_ERROR(recent_calls_.Load(get("recent_calls")));
  EDL_RETURN_IF_ERROR(keeper_.Load(now_));
  ledger_id_ = LedgerIdOf(get("ledger"), get("parameters"), Mix(seed_, 1) | 1);
  EDL_RETURN_IF_ERROR(parameters_.Load(get("parameters"), ledger_id_, now_));
  keeper_.set_ps_lanes(parameters_.lanes());
  EDL_RETURN_IF_ERROR(model_.Load(get("model"), now_));
  recorder_.Load(now_, wall_now_);
  recorded_evaluation_ = model_.evaluation_number();
  EDL_RETURN_IF_ERROR(LoadJob(meta));
  dispatcher_.set_chief_expected(keeper_.ChiefExpected());
  master_api_.OnLoaded();
  return Ok();
}

void Core::LoadOutcome(const std::string& saved) {
  const json in = ReadJson(saved);
  if (!in.is_object()) return;
  outcome_ = static_cast<JobState>(in.value("outcome", static_cast<int>(outcome_)));
  reason_ = in.value("reason", "");
  success_rule_ = in.value("success_rule", "");
  last_lines_ = in.value("last_lines", std::vector<std::string>());
  ended_at_ = in.value("ended_at", 0.0);
}

Status Core::LoadJob(const std::map<std::string, std::string>& meta) {
  const auto get = [&](const char* key) {
    const auto found = meta.find(key);
    return found == meta.end() ? std::string() : found->second;
  };
  run_time_.Load(get("run_time"), boot_, real_now_, wall_now_);
  started_at_ = Seconds(wall_now_);
  if (const std::string saved = get("job"); !saved.empty()) {
    const auto view = job::JobView::FromJson(saved);
    if (view.ok()) {
      state_ = view->state;  // ledgers of older versions have no other copy
      started_at_ = view->started_at;
      remarks_ = view->remarks;
      master_starts_ = view->master_starts;
      progress_.Restore(view->checkpoint_step, view->evaluated_step, view->evaluation);
    } else {
      LOG_WARNING("ignoring the entry 'job' of the ledger, which is only shown: {}",
                  view.status().message());
    }
  }
  if (const std::string saved = get("state"); !saved.empty()) {
    const std::optional<JobState> state = job::JobStateFromName(saved);
    if (!state) return DamagedEntry("state", fmt::format("'{}' is not a job state", saved));
    state_ = *state;
  }
  declared_end_ = get("declared_end");
  finishing_since_ = now_;  // the evaluator gets its whole time again
  const std::string taken = get("resume_taken");
  std::from_chars(taken.data(), taken.data() + taken.size(), resume_taken_);
  if (spec_.resume_number > resume_taken_) {
    Resume();
  } else if (job::IsFinal(state_)) {
    LoadOutcome(get("outcome"));  // stays final; nothing is written
    return Ok();
  } else if (const std::string ending = get("ending"); !ending.empty()) {
    LoadOutcome(ending);
    End(outcome_, reason_, last_lines_);
  }
  ledger_.PutMeta("ledger", std::to_string(ledger_id_.value()));
  ++master_starts_;
  SaveJob();
  return Ok();
}

void Core::Resume() {
  resume_taken_ = spec_.resume_number;
  ledger_.PutMeta("resume_taken", std::to_string(resume_taken_));
  ledger_.PutMeta("ending", "");
  ledger_.PutMeta("declared_end", "");
  declared_end_.clear();
  remarks_.clear();
  dispatcher_.Resume();
  keeper_.Resume(spec_.resume_workers, IsWorkLeft());
  if (!job::MayTrain(state_)) SetState(JobState::kRunning);
}

void Core::Advance(Time now, WallTime wall_now) {
  // A stall of this process (a slow disk, SIGSTOP) must not count as silence of others.
  const Duration passed = now - real_now_;
  if (!paused()) now_ += std::clamp<Duration>(passed, Duration::zero(), kStall);
  real_now_ = now;
  wall_now_ = wall_now;
  recorder_.Advance(now, wall_now);
}

Result<const Dataset*> Core::Register(DatasetSpec spec) {
  EDL_RETURN_IF_ERROR(CheckLeasesShards(spec_));
  EDL_RETURN_IF_ERROR(model_.CheckRegistration(spec));
  if (spec.batch_size == 0) spec.batch_size = spec_.minibatch_size;
  if (spec.batches_per_shard == 0) spec.batches_per_shard = spec_.num_minibatches_per_task;
  if (spec.epochs == 0) spec.epochs = spec_.num_epochs;
  return dispatcher_.Register(std::move(spec), now_);
}

Result<uint32_t> Core::Reset(const std::string& name, uint64_t request_id) {
  if (const auto answer = recent_calls_.Find(request_id)) return *answer;
  EDL_ASSIGN_OR_RETURN(const Dataset* dataset, dispatcher_.Reset(name, now_));
  recent_calls_.Remember(request_id, dataset->row().generation);
  return dataset->row().generation;
}

Result<uint32_t> Core::Restore(const std::string& content, uint64_t request_id) {
  EDL_RETURN_IF_ERROR(CheckLeasesShards(spec_));
  if (const auto answer = recent_calls_.Find(request_id)) return *answer;
  EDL_ASSIGN_OR_RETURN(const Dataset* dataset, dispatcher_.Restore(content, now_));
  recent_calls_.Remember(request_id, dataset->row().generation);
  return dataset->row().generation;
}

void Core::DeleteSync(const std::optional<std::string>& name, uint64_t request_id) {
  if (recent_calls_.Find(request_id)) return;
  recent_calls_.Remember(request_id, 0);
  if (name.has_value()) {
    sync_.Delete(*name);
  } else {
    sync_.DeleteAll();
  }
}

void Core::CloseReplica(ReplicaRef replica) {
  for (const Incarnation incarnation : sessions_.Of(replica)) CloseSession(context_, incarnation);
  sync_.ReplicaGone(replica);
  const ReplicaKeeper::Replica* known = keeper_.Find(replica);
  const bool has_host = known != nullptr && !known->host.empty();
  rendezvous_.HostGone(has_host ? known->host : LocalAddress(replica));
}

std::string Core::HostOf(const job::ReplicaEvent& event) const {
  if (!event.host.empty()) return event.host;
  const ReplicaKeeper::Replica* replica = keeper_.Find(event.name);
  return replica == nullptr ? "" : LocalAddress(replica->row.replica);
}

void Core::OnReplicaEvent(const job::ReplicaEvent& event, std::vector<std::string> last_lines) {
  switch (event.kind) {
    case job::ReplicaEvent::Kind::kPending:
      keeper_.OnPending(event.name, event.reason, now_);
      break;
    case job::ReplicaEvent::Kind::kRunning:
      keeper_.OnRunning(event.name, event.process_id, HostOf(event), dispatcher_.counters().version,
                        now_);
      keeper_.OnNode(event.name, event.node_lost, now_);
      if (state_ == JobState::kStarting) SetState(JobState::kRunning);
      break;
    case job::ReplicaEvent::Kind::kSynced:
      keeper_.OnSynced(now_);
      if (spec_.external_replicas && state_ == JobState::kStarting) SetState(JobState::kRunning);
      // Close the sessions of replicas that have ended meanwhile.
      for (const auto& [name, replica] : keeper_.replicas()) {
        if (job::HasEnded(replica.row.state)) CloseReplica(replica.row.replica);
      }
      break;
    case job::ReplicaEvent::Kind::kExited:
      OnExited(event, std::move(last_lines));
      break;
  }
  ++view_number_;
  tick_due_ = true;  // once for all events of this round
}

void Core::OnProbed(PsCommandId number, const Result<ProbeReply>& reply) {
  parameters_.OnProbed(number, reply, now_);
  Tick();
}

void Core::OnRestored(PsCommandId number, const Status& status) {
  parameters_.OnRestored(number, status, now_);
}

void Core::OnSaved(PsCommandId number, const Status& status) {
  const auto newest = [this] {
    return parameters_.checkpoints().empty() ? "" : parameters_.checkpoints().back().name;
  };
  const std::string before = newest();
  parameters_.OnSaved(number, status, now_);
  if (newest() != before) checkpoint_at_ = Seconds(wall_now_);
  Tick();
}

void Core::OnServerAlive(int index, PsIncarnation incarnation) {
  parameters_.OnAlive(index, incarnation, now_);
}

void Core::OnServerState(const job::ServerView& view) {
  parameters_.OnState(view, now_);
  keeper_.OnServerHeard(view.index, now_);
}

void Core::LoseReplicasOfLostNodes() {
  // Sessions of the compatibility API have no heartbeat, so they prove nothing.
  const auto has_session = [this](ReplicaRef replica) {
    const std::vector<Incarnation> open = sessions_.Of(replica);
    return std::ranges::any_of(
        open, [this](Incarnation incarnation) { return !sessions_.Find(incarnation)->compat_api; });
  };
  for (const std::string& name : keeper_.LostWithTheirNodes(has_session, now_)) {
    OnExited({.name = name,
              .kind = job::ReplicaEvent::Kind::kExited,
              .cause = {.kind = job::ExitCause::Kind::kKilled,
                        .signal = SIGKILL,
                        .message = "its node is lost and it sends no heartbeat"}},
             {});
    // If the node returns, the process there is not the replica any more.
    keeper_.StopUnwanted(name, now_);
    ++view_number_;
  }
}

void Core::OnExited(const job::ReplicaEvent& event, std::vector<std::string> last_lines) {
  const ReplicaKeeper::Replica* replica = keeper_.Find(event.name);
  EndOfLife end{.version = dispatcher_.counters().version, .last_lines = std::move(last_lines)};
  if (replica != nullptr) {
    const ReplicaRef ref = replica->row.replica;
    end.progressed = ref.role == job::Role::kPs
                         ? dispatcher_.counters().version > replica->first_version
                         : dispatcher_.MadeProgress(ref);
    end.fetch_unanswered = compat_api_.LeftUnanswered(ref);
    dispatcher_.ForgetProgress(ref);
    // A published client cannot call finish(), but the chief of an Estimator exits when training
    // ends.
    if (ref.role == job::Role::kChief && event.cause.kind == job::ExitCause::Kind::kSucceeded &&
        !end.fetch_unanswered && declared_end_.empty() && sessions_.FindCompat(ref) != nullptr) {
      declared_end_ = "the chief, which runs a published client, exited with 0";
      ledger_.PutMeta("declared_end", declared_end_);
    }
    CloseReplica(ref);
  }
  progress_.Forget(event.name);
  keeper_.OnExit(event.name, event.cause, std::move(end), now_);
}

std::vector<int64_t> Core::RunningServers() const {
  std::vector<int64_t> running(static_cast<size_t>(spec_.num_ps), -1);
  for (const auto& [name, replica] : keeper_.replicas()) {
    const auto index = static_cast<size_t>(replica.row.index);
    if (replica.row.replica.role == job::Role::kPs && index < running.size() &&
        replica.row.state == job::ReplicaState::kRunning) {
      running[index] = std::max(running[index], replica.row.replica.id);
    }
  }
  return running;
}

void Core::OnLog(const std::string& replica, std::string_view text) {
  const int64_t waits = progress_.evaluator_waits();
  if (progress_.Feed(replica, text)) ++view_number_;
  for (const ProgressLog::Logged& logged : progress_.TakeLogged()) recorder_.OnLogged(logged);
  // A restarted master reads old lines again and does not know when they were written.
  if (progress_.evaluator_waits() > waits && master_starts_ == 1) {
    evaluator_waits_until_ =
        now_ + std::chrono::duration_cast<Duration>(
                   std::chrono::duration<double>(std::min(progress_.evaluator_wait_secs(), 1e6)));
  }
}

bool Core::EvaluatorComesTooLate() const {
  return evaluator_waits_until_ >
         finishing_since_ + std::chrono::seconds(spec_.evaluator_grace_secs);
}

void Core::OnFinish(ReplicaRef replica) {
  if (!declared_end_.empty()) return;
  declared_end_ = fmt::format("{} {} called finish()", job::NameOf(replica.role), replica.id);
  ledger_.PutMeta("declared_end", declared_end_);
  LOG_INFO("{}: the training ends, whatever data is left", declared_end_);
  model_.EndTraining(now_);
}

void Core::OnFail(ReplicaRef replica, std::string_view message) {
  if (ending_ || job::IsFinal(state_)) return;
  constexpr size_t kLongestMessage = 4096;
  std::string paragraph(Trim(message));
  std::ranges::replace(paragraph, '\n', ' ');
  End(JobState::kFailed,
      fmt::format("{}: {}", spec_.ReplicaName(replica.role, replica.id),
                  paragraph.empty() ? "the program failed the job without a message"
                                    : OneLine(paragraph, kLongestMessage)),
      {});
}

void Core::set_paused(std::string why) {
  if (paused_ == why) return;
  paused_ = std::move(why);
  ++view_number_;
}

void Core::OnMetrics(int64_t step, const std::map<std::string, double>& metrics) {
  recorder_.OnMetrics(step, metrics);
  progress_.SetMetric("step", static_cast<double>(step));
  for (const auto& [name, value] : metrics) progress_.SetMetric(name, value);
}

Status Core::Scale(int num_workers) {
  if (spec_.external_replicas) {
    return FailedPrecondition("the workers of job {} are replicas of a TFJob: scale the TFJob",
                              spec_.job_name);
  }
  if (!job::MayTrain(state_)) {
    return FailedPrecondition("cannot scale the job: it is {}", job::NameOf(state_));
  }
  EDL_RETURN_IF_ERROR(keeper_.Scale(num_workers, now_));
  ++view_number_;
  return Ok();
}

Status Core::WantWorkers(size_t waiting,
                         const std::function<bool(const std::string&)>& was_launched) {
  if (!job::MayTrain(state_) || ending_ || AllDone()) {
    return FailedPrecondition("no work is left for another worker: job {} is {}", spec_.job_name,
                              AllDone() ? "complete" : job::NameOf(state_));
  }
  const size_t expected = keeper_.WorkersToLaunch(was_launched);
  if (expected >= waiting) return Ok();
  return Scale(keeper_.WantedWorkers() + static_cast<int>(waiting - expected));
}

void Core::Stop(const std::string& reason) {
  if (!ending_ && !job::IsFinal(state_)) End(JobState::kStopped, reason, {});
  Tick();
}

void Core::SetState(JobState state) {
  if (state == state_) return;
  state_ = state;
  ++view_number_;
  if (job::IsFinal(state)) {
    ended_at_ = Seconds(wall_now_);
    run_time_.End(real_now_);
    ledger_.PutMeta("ending", "");
    ledger_.PutMeta("outcome", OutcomeJson());
  }
  SaveJob();
  LOG_INFO("job {} is {}", spec_.job_name, job::NameOf(state));
}

void Core::SaveJob() {
  ledger_.PutMeta("state", std::string(job::NameOf(state_)));
  ledger_.PutMeta("job", View().ToJson());
  ledger_.PutMeta("run_time", run_time_.Save(real_now_, wall_now_));
}

std::string Core::OutcomeJson() const {
  return Dump(json{{"outcome", static_cast<int>(outcome_)},
                   {"reason", reason_},
                   {"success_rule", success_rule_},
                   {"last_lines", last_lines_},
                   {"ended_at", ended_at_}});
}

void Core::End(JobState outcome, std::string reason, std::vector<std::string> last_lines) {
  outcome_ = outcome;
  reason_ = std::move(reason);
  last_lines_ = std::move(last_lines);
  ending_ = true;
  parameters_.Release();
  ledger_.PutMeta("ending", OutcomeJson());
  SetState(JobState::kFinishing);
  keeper_.StopAll(now_);
}

bool Core::EvaluatorIsThrough() const {
  if (!keeper_.AnyRunning(job::Role::kEvaluator)) return true;
  return progress_.checkpoint_step() >= 0 &&
         progress_.evaluated_step() >= progress_.checkpoint_step();
}

std::string Core::DeclaredEnd() const {
  if (!declared_end_.empty()) return declared_end_;
  const auto step = progress_.metrics().find("step");
  const bool stepped =
      step != progress_.metrics().end() && step->second >= static_cast<double>(spec_.max_step);
  if (spec_.max_step > 0 && (stepped || progress_.checkpoint_step() >= spec_.max_step ||
                             dispatcher_.counters().version >= spec_.max_step)) {
    return fmt::format("--max_step={} was reached", spec_.max_step);
  }
  if (progress_.training_ended() && keeper_.ChiefSucceeded()) {
    return "the chief's Estimator ended its training";
  }
  return "";
}

void Core::EndTraining() {
  if (IsWorkLeft()) {
    if (dispatcher_.BeginLeftoverRounds()) {
      LOG_WARNING(
          "all replicas have ended and some shards were never reported: launching one more worker "
          "for them");
      keeper_.LaunchForLeftover(now_);
      return;
    }
    if (model_.enabled()) {
      End(JobState::kFailed,
          fmt::format("all workers exited with 0 while shards of dataset '{}' were left",
                      model_.next_dataset()),
          {});
      return;
    }
    dispatcher_.CountRestAsNotTrained();
  }
  SuccessRule rule = RuleOfSuccess(dispatcher_.datasets(), DeclaredEnd());
  if (keeper_.ps_asked_for_data()) {
    rule.remarks.emplace_back(
        "a ps ran the workers' program and requested data; it got none. Use --need_tf_config=true "
        "for TensorFlow's ps, --ps_program=elasticdl for ours, or omit --num_ps_pods");
  }
  for (std::string& remark : rule.remarks) {
    // A job that loses a ps at its end comes here again.
    if (std::ranges::find(remarks_, remark) == remarks_.end()) {
      remarks_.push_back(std::move(remark));
    }
  }
  if (!rule.failure.empty()) {
    End(JobState::kFailed, std::move(rule.failure), {});
    return;
  }
  // Also save what workers trained before they exited without being told to.
  if (parameters_.enabled() && !parameters_.IsDurable()) RequestSave();
  finishing_since_ = now_;
  SetState(JobState::kFinishing);
}

// A server may be lost even now, with parameters that are in no checkpoint.
bool Core::ParametersAreSettled() {
  if (IsWorkLeft()) {
    SetState(JobState::kRunning);  // until workers have trained the lost shards again
    return false;
  }
  if (dispatcher_.TrainingComplete() && !parameters_.IsDurable()) return false;
  return !parameters_.IsSaving() || now_ - finishing_since_ >= kSaveAtMost;
}

void Core::CheckBadShards() {
  if (!spec_.task_fault_tolerance) return;  // a remark at the end reports them
  int64_t bad = 0;
  const Dataset* first = nullptr;
  for (const auto& [name, dataset] : dispatcher_.datasets()) {
    bad += static_cast<int64_t>(dataset->quarantined().size());
    if (first == nullptr && !dataset->quarantined().empty()) first = dataset.get();
  }
  if (bad <= spec_.max_bad_shards) return;
  const auto& [key, error] = *first->quarantined().begin();
  LeasedShard shard{.key = key};
  first->Fill(shard);
  const std::string example =
      fmt::format("records {} to {} of dataset '{}', epoch {}: {}", shard.start, shard.end - 1,
                  first->spec().name, key.epoch, error.empty() ? "no error was given" : error);
  End(JobState::kFailed,
      fmt::format(
          "{} shard(s) failed {} times each and were quarantined, --max_bad_shards allows {}; "
          "{}",
          bad, Dataset::kMaxFailures, spec_.max_bad_shards, example),
      {});
}

void Core::DriveEnd() {
  if (state_ == JobState::kFinishing && !ending_) {
    const bool grace_over =
        now_ - finishing_since_ > std::chrono::seconds(spec_.evaluator_grace_secs);
    if (!EvaluatorIsThrough() && !grace_over && !EvaluatorComesTooLate()) return;
    if (parameters_.enabled() && !ParametersAreSettled()) return;
    if (keeper_.AnyRunning(job::Role::kEvaluator) && !EvaluatorIsThrough()) {
      remarks_.push_back(
          fmt::format("the evaluator did not evaluate the last checkpoint (step {}) within {} s{}",
                      progress_.checkpoint_step(), spec_.evaluator_grace_secs,
                      EvaluatorComesTooLate() ? ": it waits longer than that before its next "
                                                "evaluation (start_delay_secs or throttle_secs of "
                                                "EvalSpec)"
                                              : ""));
    }
    success_rule_ = RuleOfSuccess(dispatcher_.datasets(), DeclaredEnd()).why;
    End(JobState::kSucceeded, "", {});
  }
  // Before the backend is synced, replicas may run that the master does not know yet.
  if (ending_ && !job::IsFinal(state_) && keeper_.synced() && !keeper_.AnyRunning()) {
    SetState(outcome_);
  }
}

void Core::EndTroubled() {
  for (auto& [replica, reason] : dispatcher_.TakeHungReplicas()) {
    keeper_.troubled().Add(replica, std::move(reason), now_);
  }
  if (keeper_.troubled().number() != shown_troubles_) {
    shown_troubles_ = keeper_.troubled().number();
    ++view_number_;
  }
  if (ending_) return;
  // A replica that runs but does no work is ended when all data is done, and replaced before that
  // if the user wants it. A chief is always replaced, because it has more to do than train shards.
  const bool done = AllDone();
  const auto troubles = keeper_.troubled().all();
  for (const auto& [replica, trouble] : troubles) {
    const bool trains = replica.role == job::Role::kWorker || replica.role == job::Role::kChief;
    const bool replace = !done || replica.role == job::Role::kChief;
    if (!trains || now_ - trouble.since <= (done ? kEndedAfter : kReplacedAfter)) continue;
    if (!done && !spec_.relaunch_timeout_worker) continue;
    using AfterEnd = ReplicaKeeper::AfterEnd;
    if (keeper_.EndTroubled(replica, replace ? AfterEnd::kRefillSlot : AfterEnd::kSlotSucceeded)) {
      remarks_.push_back(fmt::format("{} {} was {}: it {}", job::NameOf(replica.role), replica.id,
                                     replace ? "replaced" : "ended", trouble.reason));
    }
  }
}

void Core::Tick() {
  tick_due_ = false;
  if (job::IsFinal(state_) || paused()) return;
  master_api_.Tick();
  LoseReplicasOfLostNodes();
  sync_.Tick(now_);
  staleness_.Tick(now_);
  keeper_.Tick(now_);
  if (parameters_.enabled() && !ending_) {
    parameters_.Tick(RunningServers(), now_);
    for (const SilentServer& server : parameters_.TakeSilent()) {
      keeper_.Replace({job::Role::kPs, server.replica}, server.why);
    }
  }
  dispatcher_.set_chief_expected(keeper_.ChiefExpected());
  dispatcher_.Tick(now_);
  dispatcher_.SettleAll(now_);
  EndTroubled();
  if (keeper_.failure() && !ending_) {
    End(JobState::kFailed, keeper_.failure()->reason, keeper_.failure()->last_lines);
  }
  if (parameters_.failure() && !ending_) End(JobState::kFailed, *parameters_.failure(), {});
  if (!ending_) model_.Update(now_);
  if (model_.failure() && !ending_) End(JobState::kFailed, *model_.failure(), {});
  if (!ending_) CheckBadShards();
  if (state_ == JobState::kRunning && (keeper_.ChiefSucceeded() || AllDone())) {
    keeper_.WithdrawPending(now_);
  }
  // Also for a job whose replicas started and ended while no master ran.
  if (job::MayTrain(state_) && keeper_.TrainingEnded()) EndTraining();
  DriveEnd();
  master_api_.PushMembership();
  recorder_.Sample();
}

void Core::SaveCounters() {
  const Dispatcher::Counters& counters = dispatcher_.counters();
  std::string text = fmt::format(
      R"({{"next_lease":{},"next_task":{},"next_dataset":{},"version":{},"next_incarnation":{}}})",
      counters.next_lease, counters.next_task, counters.next_dataset, counters.version,
      sessions_.next_incarnation());
  if (text == saved_counters_) return;
  ledger_.PutMeta("counters", text);
  saved_counters_ = std::move(text);
}

void Core::ShowEvaluation() {
  if (model_.evaluation_number() == shown_evaluation_) return;
  shown_evaluation_ = model_.evaluation_number();
  const job::EvaluationView& last = model_.evaluations().back();
  progress_.SetEvaluation(last.version, Describe(last));
  if (shown_evaluation_ > recorded_evaluation_) recorder_.OnEvaluation(last);
  ++view_number_;
}

Status Core::Commit(size_t most_answers) {
  if (tick_due_) Tick();
  if (!ending_ && !job::IsFinal(state_)) model_.Update(now_);
  if (model_.failure() && !ending_) Tick();
  ShowEvaluation();
  model_.Flush();
  dispatcher_.Flush();
  sessions_.Flush();
  sync_.Flush();
  rendezvous_.Flush();
  recent_calls_.Flush();
  parameters_.Flush();
  SaveCounters();
  recorder_.Flush(job::IsFinal(state_));
  last_commit_wrote_ = ledger_.has_writes();
  EDL_RETURN_IF_ERROR(ledger_.Commit());
  outbox_.OnCommitted();
  outbox_.Release(most_answers);
  return Ok();
}

Result<std::string> Core::LedgerJson() {
  dispatcher_.Flush();
  sessions_.Flush();
  return master::LedgerJson(ledger_);
}

job::JobView Core::View() const {
  job::JobView view;
  view.name = spec_.job_name;
  view.state = state_;
  view.reason = reason_;
  view.success_rule = state_ == JobState::kSucceeded ? success_rule_ : "";
  view.paused = paused_;
  view.last_lines = last_lines_;
  view.remarks = remarks_;
  view.started_at = started_at_;
  view.ended_at = ended_at_;
  view.ran_seconds = run_time_.Seconds(real_now_);
  view.updated_at = Seconds(wall_now_);
  view.version = dispatcher_.counters().version;
  view.relaunches = keeper_.relaunches();
  view.master_starts = master_starts_;
  view.master_process_id = process_id_;
  view.http_address = http_address_;
  view.metrics = progress_.metrics();
  view.evaluation = progress_.evaluation();
  view.evaluations = model_.evaluations();
  view.checkpoint_step = progress_.checkpoint_step();
  view.evaluated_step = progress_.evaluated_step();
  if (parameters_.enabled()) {
    view.servers = parameters_.View(now_);
    if (!parameters_.checkpoints().empty()) view.checkpoint = parameters_.checkpoints().back().name;
  }
  for (const auto& [name, dataset] : dispatcher_.datasets()) {
    view.datasets.push_back(dataset->View());
    view.datasets.back().leases = dispatcher_.LeasesOf(*dataset);
  }
  for (const auto& [name, replica] : keeper_.replicas()) {
    const std::string trouble = keeper_.troubled().ReasonOf(replica.row.replica);
    view.replicas.push_back({.name = name,
                             .role = std::string(job::NameOf(replica.row.replica.role)),
                             .index = replica.row.index,
                             .id = replica.row.replica.id,
                             .state = replica.row.state,
                             .process_id = replica.row.process_id,
                             .reason = trouble.empty() ? replica.row.reason : trouble,
                             .leases = dispatcher_.LeasesOf(replica.row.replica)});
  }
  view.replicas_left_out = keeper_.forgotten();
  std::sort(view.replicas.begin(), view.replicas.end(), [](const auto& a, const auto& b) {
    return std::tie(a.role, a.id) < std::tie(b.role, b.id);
  });
  return view;
}

}  // namespace edl::master
