#include "simulation/simulated_job.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "job/names.h"

namespace edl::master {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// At the compatibility API the master notices some failures only after many minutes.
constexpr seconds kGiveUpAfter{7200};
constexpr seconds kGiveUpServersAfter{1200};

}  // namespace

SimulatedJob::SimulatedJob(uint64_t seed, Mutant mutant)
    : seed_(seed), mutant_(mutant), time_(seed), plan_(MakePlan(time_.random())) {
  time_.set_loss(plan_.loss);
  spec_.job_name = "sim";
  spec_.job_command = "train";
  spec_.num_workers = plan_.workers;
  spec_.need_tf_config = plan_.chief;
  spec_.num_minibatches_per_task = 8;
  spec_.relaunch_on_worker_failure = 1'000'000;
  spec_.evaluator_grace_secs = 1;
  if (plan_.own_servers) AddServers();
}

void SimulatedJob::AddServers() {
  spec_.own_ps = true;
  spec_.num_ps = plan_.servers;
  spec_.ps_lanes = plan_.lanes;
  spec_.ps_relaunch_max_num = 1'000'000;
  spec_.ps_silence_secs = mutant_ == Mutant::kNoSilenceLimit ? 0 : 15;
  spec_.recovery_checkpoint_secs = plan_.recovery_secs;
  spec_.checkpoint_steps = plan_.checkpoint_steps;
  spec_.keep_checkpoint_max = plan_.keep_checkpoints;
  const auto report = [this](const job::ReplicaEvent& event) {
    if (event.kind == job::ReplicaEvent::Kind::kExited) exits_[event.name] = event;
    Report(event);
  };
  const auto resume_with = [this](const SimulatedServers::Layout& layout) {
    CrashMaster();
    // Only a job that has ended is resumed: its workers have exited.
    const auto workers = workers_;
    for (const auto& [name, worker] : workers) Exit(worker, job::ExitCause::Kind::kKilled);
    spec_.num_ps = static_cast<int>(layout.servers);
    spec_.ps_lanes = static_cast<int64_t>(layout.lanes);
  };
  servers_.emplace(plan_, mutant_, time_, result_,
                   SimulatedServers::Environment{report, resume_with});
  ps_controller_.emplace(
      plan_, mutant_, *servers_, time_, result_,
      SimulatedPsController::Master{
          .life = [this] { return core_ == nullptr ? 0 : master_life_; },
          .run = [this](const std::function<void(Core&)>& work) { AtMaster(work); }});
  trainer_.emplace(plan_, mutant_, *servers_, time_, result_);
  servers_->BeginMoves();
}

// --- master ---

void SimulatedJob::StartMaster() {
  time_.Note("the master starts");
  ++master_life_;
  core_ = std::make_unique<Core>(*ledger_, spec_, seed_);
  const Status loaded = core_->Load(now(), WallTime(now().time_since_epoch()));
  if (!loaded.ok()) Fail("the master cannot start: " + loaded.ToString());
  // The backend reports all replicas, and exits that were not acknowledged.
  for (const auto& [name, worker] : workers_) {
    if (worker->alive) {
      core_->OnReplicaEvent({.name = name, .kind = job::ReplicaEvent::Kind::kRunning}, {});
    }
  }
  if (servers_) {
    for (const std::string& name : servers_->Running()) {
      core_->OnReplicaEvent({.name = name, .kind = job::ReplicaEvent::Kind::kRunning}, {});
    }
  }
  for (const auto& [name, exit] : exits_) core_->OnReplicaEvent(exit, {});
  core_->OnReplicaEvent({.kind = job::ReplicaEvent::Kind::kSynced}, {});
  if (ps_controller_) ps_controller_->Start();
  Step();
  // Workers notice their broken connection and join again.
  for (const auto& [name, worker] : workers_) {
    if (!worker->alive || worker->compat_api || worker->incarnation.value() == 0) continue;
    AtWorker(worker, Between(10, 800), [this, worker = worker] { Join(worker); });
  }
}

void SimulatedJob::CrashMaster() {
  if (core_ == nullptr) return;
  ++result_.master_crashes;
  time_.Note("the master crashes");
  core_->DropAnswers();
  ledger_->Rollback();
  core_.reset();
  if (ps_controller_) ps_controller_->Crash();
  ++master_life_;
  // Held calls of the compatibility API end with an error.
  for (const auto& [name, worker] : workers_) {
    if (worker->alive && worker->registering) {
      AtWorker(worker, Between(1, 20), [this, worker = worker] { OnRegisterError(worker); });
    }
    if (worker->alive && worker->reporting != 0) {
      AtWorker(worker, seconds(15), worker->report_broke);
    }
    if (worker->alive && worker->fetching != 0) {
      AtWorker(worker, Between(1, 20),
               [this, worker = worker, call = worker->fetching] { OnFetchError(worker, call); });
    }
  }
  At(Between(5, 900), [this] { StartMaster(); });
}

void SimulatedJob::AtMaster(const std::function<void(Core&)>& work) {
  if (core_ == nullptr || time_.failed()) return;
  if (now() >= stalled_until_ && held_.empty()) return RunAtMaster(work);
  // A stalled master handles what waits in its sockets when it continues.
  held_.emplace_back(master_life_, work);
  if (held_.size() == 1) RunHeld();
}

void SimulatedJob::RunHeld() {
  if (now() < stalled_until_) {
    At(stalled_until_ - now(), [this] { RunHeld(); });
    return;
  }
  for (const auto& [life, work] : std::exchange(held_, {})) {
    if (life == master_life_) RunAtMaster(work);
  }
}

void SimulatedJob::RunAtMaster(const std::function<void(Core&)>& work) {
  if (core_ == nullptr || time_.failed()) return;
  core_->Advance(now(), WallTime(now().time_since_epoch()));
  work(*core_);
  // A crash between a decision and its commit must undo the decision. A crash right after the
  // commit must only lose the answers.
  if (Faulty() && plan_.crash_rate > 0 && Chance() < 0.002) {
    if (Chance() < 0.5) {
      CrashMaster();
      return;
    }
    core_->DropAnswers();
    Step();
    CrashMaster();
    return;
  }
  Step();
}

void SimulatedJob::Step() {
  if (core_ == nullptr) return;
  CheckInvariants();
  const Status committed = core_->Commit();
  if (!committed.ok()) Fail("commit: " + committed.ToString());
  for (const Command& command : core_->TakeCommands()) {
    At(Between(1, 50), [this, command] { Execute(command); });
  }
  if (!ps_controller_) return;
  ps_controller_->storage().CheckNewest(*core_);
  ps_controller_->Do(core_->TakeServerCommands());
}

void SimulatedJob::Tick() {
  const bool up = core_ != nullptr && now() >= stalled_until_;
  if (up) AtMaster([](Core& core) { core.Tick(); });
  if (core_ != nullptr && job::IsFinal(core_->state())) return;
  if (Faulty() && core_ != nullptr) {
    const double tick = 0.5;
    if (Chance() < plan_.crash_rate * tick) {
      CrashMaster();
    } else if (Chance() < plan_.stall_rate * tick) {
      stalled_until_ = now() + Between(500, 20000);
      time_.Note("the master stalls");
    }
    MayReset();
  }
  At(milliseconds(500), [this] { Tick(); });
}

// Resets the dataset now and then, while there are workers for it.
void SimulatedJob::MayReset() {
  if (plan_.reset_rate == 0 || core_ == nullptr || Chance() >= plan_.reset_rate / 2) return;
  AtMaster([this](Core& core) {
    const Dataset* dataset = core.dispatcher().Find(Plan::kDataset);
    if (dataset == nullptr || dataset->row().told_finished || result_.resets > 3) return;
    ++result_.resets;
    time_.Note("the dataset is reset");
    if (!core.Reset(Plan::kDataset).ok()) Fail("the dataset was not reset");
  });
}

void SimulatedJob::CheckInvariants() {
  std::set<ShardPosition> leased;
  int64_t counted = 0;  // shards that are to be trained again
  const Dataset* dataset = core_->dispatcher().Find(Plan::kDataset);
  for (const auto& [id, lease] : core_->dispatcher().leases()) {
    const bool is_new = leases_[lease.row.key].insert(id).second;
    if (is_new && lease.row.counted) ++result_.reopened;
    counted += lease.row.counted ? 1 : 0;
    if (!leased.insert(lease.row.key).second) {
      Fail(fmt::format("shard {}/{} is leased twice", lease.row.key.epoch, lease.row.key.ordinal));
    }
    if (dataset->IsDone(lease.row.key)) {
      Fail(fmt::format("shard {}/{} is done and leased", lease.row.key.epoch,
                       lease.row.key.ordinal));
    }
  }
  if (dataset == nullptr) return;
  // Every shard that was ever handed out is leased, waits to be leased again, or is done.
  const auto per_epoch = static_cast<int64_t>(dataset->shards_per_epoch());
  const int64_t handed_out =
      dataset->row().epoch * per_epoch + static_cast<int64_t>(dataset->row().next);
  for (const auto& [key, shard] : dataset->returned()) counted += shard.counted ? 1 : 0;
  const int64_t accounted = static_cast<int64_t>(leased.size() + dataset->returned_count()) +
                            dataset->row().shards_done - counted;
  if (handed_out != accounted) {
    Fail(fmt::format("{} shards were handed out, {} are accounted for", handed_out, accounted));
  }
}

// --- backend ---

void SimulatedJob::Execute(const Command& command) {
  if (const auto* launch = std::get_if<LaunchCommand>(&command)) {
    Launch(*launch);
  } else if (const auto* stop = std::get_if<StopCommand>(&command)) {
    if (servers_) servers_->Stop(stop->name);
    auto found = workers_.find(stop->name);
    if (found != workers_.end()) Exit(found->second, job::ExitCause::Kind::kKilled);
  } else if (const auto* acknowledge = std::get_if<AcknowledgeCommand>(&command)) {
    exits_.erase(acknowledge->name);
  }
}

void SimulatedJob::Launch(const LaunchCommand& command) {
  if (command.replica.role == job::Role::kPs) return servers_->Launch(command);
  if (workers_.contains(command.name)) return;
  auto worker = std::make_shared<Worker>();
  worker->name = command.name;
  worker->replica = command.replica;
  worker->compat_api = plan_.compat_api_mixed && command.replica.id % 2 == 1;
  worker->buffer = static_cast<size_t>(Between(0, 3).count());
  if (servers_) worker->buffer = 0;
  workers_[command.name] = worker;
  Report({.name = command.name, .kind = job::ReplicaEvent::Kind::kRunning, .process_id = 1});
  AtWorker(worker, Between(50, 1500), [this, worker] { Begin(worker); });
  NextFaults(worker);
}

void SimulatedJob::Exit(const WorkerPtr& worker, job::ExitCause::Kind kind) {
  if (!worker->alive) return;
  time_.Note("{} exits: {}", worker->name, job::NameOf(kind));
  worker->alive = false;
  if (mutant_ == Mutant::kNoReclaim && kind == job::ExitCause::Kind::kKilled) {
    KeepSessionOfDead(worker);
    return;
  }
  exits_[worker->name] = {.name = worker->name,
                          .kind = job::ReplicaEvent::Kind::kExited,
                          .cause = {.kind = kind, .message = "simulated"}};
  At(Between(1, 100), [this, worker] {
    auto exit = exits_.find(worker->name);
    if (exit != exits_.end()) Report(exit->second);
  });
}

// For kNoReclaim: keeps the session of a dead worker alive, so that its leases are never reclaimed.
void SimulatedJob::KeepSessionOfDead(const WorkerPtr& worker) {
  AtMaster([worker](Core& core) {
    core.master_api().Heartbeat(worker->incarnation, [](const Result<Done>&) {});
  });
  At(seconds(1), [this, worker] { KeepSessionOfDead(worker); });
}

void SimulatedJob::Report(const job::ReplicaEvent& event) {
  AtMaster([event](Core& core) { core.OnReplicaEvent(event, {}); });
}

SimulationResult SimulatedJob::Run() {
  auto ledger = Ledger::Open(":memory:");
  CHECK(ledger.ok(), "{}", ledger.status().message());
  ledger_ = std::move(*ledger);
  At(milliseconds(0), [this] { StartMaster(); });
  At(milliseconds(1), [this] { Tick(); });
  const Time give_up_at = now() + (servers_ ? kGiveUpServersAfter : kGiveUpAfter);
  while (!time_.failed() && time_.RunNext()) {
    if (now() > give_up_at) Fail("the job does not end");
    if (core_ != nullptr && job::IsFinal(core_->state())) break;
  }
  CheckEnd();
  result_.virtual_seconds = time_.seconds();
  result_.lost_messages = time_.lost();
  result_.failure = time_.failure();
  result_.ok = !time_.failed();
  return result_;
}

void SimulatedJob::CheckEnd() {
  if (time_.failed()) return;
  if (core_ == nullptr || core_->state() != job::JobState::kSucceeded) {
    return Fail(fmt::format("the job ended as {}: {}",
                            core_ == nullptr ? "nothing" : job::NameOf(core_->state()),
                            core_ == nullptr ? "" : core_->View().reason));
  }
  const Dataset* dataset = core_->dispatcher().Find(Plan::kDataset);
  if (dataset == nullptr) {
    return Fail("the job succeeded, and nobody ever registered its dataset");
  }
  const job::DatasetView view = dataset->View();
  if (view.records_done != view.records_total || !view.finished) {
    Fail(fmt::format("{} of {} records were completed, and the job succeeded", view.records_done,
                     view.records_total));
    LOG_INFO("{}", core_->LedgerJson().value());
  }
  // Late messages alone can make the master replace a server that seems silent, so that shards are
  // trained again.
  const bool quiet = result_.kills + result_.freezes + time_.lost() + result_.master_crashes +
                         result_.server_kills + result_.moves + result_.resets + result_.restores ==
                     0;
  for (int64_t epoch = 0; epoch < plan_.data.epochs; ++epoch) {
    for (uint64_t ordinal = 0; ordinal < dataset->shards_per_epoch(); ++ordinal) {
      const int times = trainings_[{epoch, ordinal}];
      const auto leases = static_cast<int>(leases_[{epoch, ordinal}].size());
      // What servers lose is trained again under the same lease too.
      const bool too_often = !servers_ && times > leases;
      if (times < 1 || too_often || (quiet && leases > 1)) {
        Fail(fmt::format("shard {}/{} was trained {} times under {} leases", epoch, ordinal, times,
                         leases));
      }
    }
  }
  if (ps_controller_) ps_controller_->storage().CheckAll(*core_);
}

}  // namespace edl::master
