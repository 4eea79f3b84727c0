#include "master/testing/simulation.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "base/log.h"
#include "job/names.h"
#include "master/core.h"
#include "master/testing/simulation_plan.h"

namespace edl::master {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kFaultsUntil{90};
constexpr seconds kGiveUpAfter{7200};

class Simulation {
 public:
  Simulation(uint64_t seed, Mutant mutant);
  ~Simulation() {
    // What a worker does when its report fails holds the worker.
    for (const auto& [name, worker] : workers_) worker->report_broke = nullptr;
  }
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  SimulationResult Run();

 private:
  // One life of a worker's process.
  struct Worker {
    std::string name;
    ReplicaRef replica;
    bool old_door = false;
    bool alive = true;
    Time frozen_until;
    Incarnation incarnation;
    uint64_t next_number = 1;
    uint64_t received = 0;
    uint64_t watch = 0;
    uint64_t join_try = 0;
    std::optional<ExchangeRequest> open_call;  // not answered yet
    std::vector<LeasedShard> trained;          // in order, not reported yet
    std::vector<LeasedShard> in_hand;          // leased, being trained
    size_t buffer = 0;                         // how many it cannot report before the end
    bool ended = false;
    bool leaving = false;
    // At the old door: such a call is with the master, by its number; 0: none.
    bool registering = false;
    uint64_t fetching = 0;
    uint64_t reporting = 0;
    std::function<void()> report_broke;  // what it does when the call fails
  };
  using WorkerPtr = std::shared_ptr<Worker>;  // the simulation's and its pending events'

  struct Event {
    Time at;
    uint64_t order;
    std::function<void()> run;
    bool operator<(const Event& other) const {
      return std::tie(at, order) > std::tie(other.at, other.order);
    }
  };

  // --- machinery ---
  double Chance() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  milliseconds Between(int low, int high) {
    return milliseconds(std::uniform_int_distribution<int>(low, high)(random_));
  }
  void At(Duration later, std::function<void()> run) {
    events_.push({now_ + later, ++order_, std::move(run)});
  }
  bool Faulty() const { return now_ - start_ < kFaultsUntil; }
  bool Lose();
  void Fail(const std::string& what);
  void Note(std::string_view what) const;  // in the log of a replay

  // --- master ---
  void StartMaster();
  void CrashMaster();
  void AtMaster(const std::function<void(Core&)>& work);
  void Step();
  void Tick();
  void CheckInvariants();

  // --- backend ---
  void Carry(const Command& command);
  void Launch(const LaunchCommand& command);
  void Exit(const WorkerPtr& worker, job::ExitCause::Kind kind);
  void Tell(const job::ReplicaEvent& event);
  void Mourn(const WorkerPtr& worker);

  // --- workers ---
  // Runs when the worker is able to: later if it is frozen, never if it is dead.
  void AtWorker(const WorkerPtr& worker, Duration later, std::function<void()> run);
  void Begin(const WorkerPtr& worker);
  void OnRegisterError(const WorkerPtr& worker);
  void Register(const WorkerPtr& worker);
  void Join(const WorkerPtr& worker);
  void OnJoined(const WorkerPtr& worker, const JoinRequest& request, const JoinReply& reply);
  // The master counts no lease as the worker's that the worker does not know of.
  void CheckNoOrphans(const Worker& worker, const ExchangeReply& reply);
  void Beat(const WorkerPtr& worker);
  void Ask(const WorkerPtr& worker);
  void SendExchange(const WorkerPtr& worker, uint64_t number);
  void DeliverExchange(const WorkerPtr& worker, const ExchangeRequest& request);
  void OnExchange(const WorkerPtr& worker, uint64_t number, const Result<ExchangeReply>& reply);
  void Fetch(const WorkerPtr& worker);
  void OnFetched(const WorkerPtr& worker, uint64_t call, const std::optional<LeasedShard>& shard);
  void OnFetchError(const WorkerPtr& worker, uint64_t call);
  // Reports all but the last `keep` that were trained.
  void ReportOldDoor(const WorkerPtr& worker, size_t keep, std::function<void()> then);
  void Train(const WorkerPtr& worker, const LeasedShard& shard);
  void NextFaults(const WorkerPtr& worker);

  const uint64_t seed_;
  const Mutant mutant_;
  std::mt19937_64 random_;
  Plan plan_;
  job::JobSpec spec_;
  Time start_{seconds(1000)};
  Time now_ = start_;
  uint64_t order_ = 0;
  std::priority_queue<Event> events_;
  SimulationResult result_;
  bool failed_ = false;

  std::optional<Ledger> ledger_;
  std::unique_ptr<Core> core_;
  uint64_t master_life_ = 0;
  uint64_t calls_ = 0;
  Time stalled_until_ = start_;

  std::map<std::string, WorkerPtr> workers_;
  std::map<std::string, job::ReplicaEvent> exits_;  // until acknowledged
  std::map<ShardKey, int> trainings_;               // how often each shard was wholly trained
  std::map<ShardKey, std::set<LeaseId>> leases_;    // all that a shard ever had
};

Simulation::Simulation(uint64_t seed, Mutant mutant)
    : seed_(seed), mutant_(mutant), random_(seed), plan_(MakePlan(random_)) {
  spec_.job_name = "sim";
  spec_.job_command = "train";
  spec_.num_workers = plan_.workers;
  spec_.need_tf_config = plan_.chief;
  spec_.num_minibatches_per_task = 8;
  spec_.relaunch_on_worker_failure = 1'000'000;
  spec_.evaluator_grace_secs = 1;
}

void Simulation::Fail(const std::string& what) {
  if (failed_) return;
  failed_ = true;
  result_.failure = fmt::format("seed {} at {:.3f} s: {}", seed_,
                                std::chrono::duration<double>(now_ - start_).count(), what);
}

void Simulation::Note(std::string_view what) const {
  LOG_DEBUG("{:.3f} {}", std::chrono::duration<double>(now_ - start_).count(), what);
}

bool Simulation::Lose() {
  if (!Faulty() || Chance() >= plan_.loss) return false;
  ++result_.lost_messages;
  return true;
}

// --- master ---

void Simulation::StartMaster() {
  Note("the master starts");
  ++master_life_;
  core_ = std::make_unique<Core>(*ledger_, spec_, seed_);
  const Status loaded = core_->Load(now_, WallTime(now_.time_since_epoch()));
  if (!loaded.ok()) Fail("the master cannot start: " + loaded.ToString());
  // The backend tells what it has; whatever ended meanwhile is among it.
  for (const auto& [name, worker] : workers_) {
    if (worker->alive) {
      core_->OnReplicaEvent({.name = name, .kind = job::ReplicaEvent::Kind::kRunning}, {});
    }
  }
  for (const auto& [name, exit] : exits_) core_->OnReplicaEvent(exit, {});
  core_->OnReplicaEvent({.kind = job::ReplicaEvent::Kind::kSynced}, {});
  Step();
  // Workers notice their broken connection and come again.
  for (const auto& [name, worker] : workers_) {
    if (!worker->alive || worker->old_door || worker->incarnation.value() == 0) continue;
    AtWorker(worker, Between(10, 800), [this, worker = worker] { Join(worker); });
  }
}

void Simulation::CrashMaster() {
  if (core_ == nullptr) return;
  ++result_.master_crashes;
  Note("the master crashes");
  core_->outbox().Clear();
  ledger_->Rollback();
  core_.reset();
  ++master_life_;
  // Held calls of the old door end with an error.
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

void Simulation::AtMaster(const std::function<void(Core&)>& work) {
  if (core_ == nullptr || failed_) return;
  if (now_ < stalled_until_) {
    // A stopped master answers what waits in its socket once it goes on.
    At(stalled_until_ - now_, [this, work, life = master_life_] {
      if (life == master_life_) AtMaster(work);
    });
    return;
  }
  core_->Advance(now_, WallTime(now_.time_since_epoch()));
  work(*core_);
  // Dying between a decision and its commit must undo it; right after it, only lose the answers.
  if (Faulty() && plan_.crash_rate > 0 && Chance() < 0.002) {
    if (Chance() < 0.5) {
      CrashMaster();
      return;
    }
    core_->outbox().Clear();
    Step();
    CrashMaster();
    return;
  }
  Step();
}

void Simulation::Step() {
  if (core_ == nullptr) return;
  CheckInvariants();
  const Status committed = core_->Commit();
  if (!committed.ok()) Fail("commit: " + committed.ToString());
  for (const Command& command : core_->TakeCommands()) {
    At(Between(1, 50), [this, command] { Carry(command); });
  }
}

void Simulation::Tick() {
  const bool up = core_ != nullptr && now_ >= stalled_until_;
  if (up) AtMaster([](Core& core) { core.Tick(); });
  if (core_ != nullptr && job::IsFinal(core_->state())) return;
  if (Faulty() && core_ != nullptr) {
    const double tick = 0.5;
    if (Chance() < plan_.crash_rate * tick) {
      CrashMaster();
    } else if (Chance() < plan_.stall_rate * tick) {
      stalled_until_ = now_ + Between(500, 20000);
      Note("the master stalls");
    }
  }
  At(milliseconds(500), [this] { Tick(); });
}

void Simulation::CheckInvariants() {
  std::set<std::pair<uint32_t, ShardKey>> leased;
  const Dataset* dataset = core_->dispatcher().Find(Plan::kDataset);
  for (const auto& [id, lease] : core_->dispatcher().leases()) {
    leases_[lease.row.key].insert(id);
    if (!leased.emplace(0, lease.row.key).second) {
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
  const int64_t accounted =
      static_cast<int64_t>(leased.size() + dataset->returned_count()) + dataset->row().shards_done;
  if (handed_out != accounted) {
    Fail(fmt::format("{} shards were handed out, {} are accounted for", handed_out, accounted));
  }
}

// --- backend ---

void Simulation::Carry(const Command& command) {
  if (const auto* launch = std::get_if<LaunchCommand>(&command)) {
    Launch(*launch);
  } else if (const auto* stop = std::get_if<StopCommand>(&command)) {
    auto found = workers_.find(stop->name);
    if (found != workers_.end()) Exit(found->second, job::ExitCause::Kind::kKilled);
  } else if (const auto* acknowledge = std::get_if<AcknowledgeCommand>(&command)) {
    exits_.erase(acknowledge->name);
  }
}

void Simulation::Launch(const LaunchCommand& command) {
  if (workers_.contains(command.name)) return;
  auto worker = std::make_shared<Worker>();
  worker->name = command.name;
  worker->replica = command.replica;
  worker->old_door = plan_.old_door_mixed && command.replica.id % 2 == 1;
  worker->buffer = static_cast<size_t>(Between(0, 3).count());
  workers_[command.name] = worker;
  // ps and evaluator just run.
  Tell({.name = command.name, .kind = job::ReplicaEvent::Kind::kRunning, .process_id = 1});
  AtWorker(worker, Between(50, 1500), [this, worker] { Begin(worker); });
  NextFaults(worker);
}

void Simulation::Exit(const WorkerPtr& worker, job::ExitCause::Kind kind) {
  if (!worker->alive) return;
  Note(fmt::format("{} exits: {}", worker->name, job::NameOf(kind)));
  worker->alive = false;
  if (mutant_ == Mutant::kNoReclaim && kind == job::ExitCause::Kind::kKilled) {
    Mourn(worker);
    return;
  }
  exits_[worker->name] = {.name = worker->name,
                          .kind = job::ReplicaEvent::Kind::kExited,
                          .cause = {.kind = kind, .message = "simulated"}};
  At(Between(1, 100), [this, worker] {
    auto exit = exits_.find(worker->name);
    if (exit != exits_.end()) Tell(exit->second);
  });
}

// To a master that does not reclaim, the dead are as good as alive.
void Simulation::Mourn(const WorkerPtr& worker) {
  AtMaster([worker](Core& core) {
    core.our_door().Beat(worker->incarnation, [](const Result<Done>&) {});
  });
  At(seconds(1), [this, worker] { Mourn(worker); });
}

void Simulation::Tell(const job::ReplicaEvent& event) {
  AtMaster([event](Core& core) { core.OnReplicaEvent(event, {}); });
}

// --- workers ---

void Simulation::AtWorker(const WorkerPtr& worker, Duration later, std::function<void()> run) {
  At(later, [this, worker, run = std::move(run)] {
    if (!worker->alive || failed_) return;
    if (now_ < worker->frozen_until) {
      AtWorker(worker, worker->frozen_until - now_, run);
      return;
    }
    run();
  });
}

void Simulation::NextFaults(const WorkerPtr& worker) {
  At(seconds(1), [this, worker] {
    if (!worker->alive || !Faulty()) return;
    if (Chance() < plan_.kill_rate) {
      ++result_.kills;
      if (!worker->in_hand.empty() || !worker->trained.empty()) ++result_.kills_with_lease;
      Exit(worker, job::ExitCause::Kind::kKilled);
      return;
    }
    if (Chance() < plan_.freeze_rate) {
      ++result_.freezes;
      worker->frozen_until = now_ + Between(1000, 30000);
      Note(worker->name + " freezes");
    }
    NextFaults(worker);
  });
}

void Simulation::Begin(const WorkerPtr& worker) {
  if (!worker->old_door) {
    Join(worker);
    return;
  }
  worker->registering = true;
  if (core_ == nullptr) {
    AtWorker(worker, Between(1, 20), [this, worker] { OnRegisterError(worker); });
    return;
  }
  // A published client waits for this answer before it asks for data.
  AtMaster([this, worker](Core& core) {
    if (!core.Register(plan_.data).ok()) Fail("the dataset was refused");
    core.outbox().Add([this, worker] {
      AtWorker(worker, Between(1, 30), [this, worker] {
        if (!worker->registering) return;  // the connection broke before
        worker->registering = false;
        Fetch(worker);
      });
    });
  });
}

void Simulation::OnRegisterError(const WorkerPtr& worker) {
  if (!worker->registering) return;  // answered before
  worker->registering = false;
  if (plan_.quits_on_error) {
    // Only a fetch that fails is taken for the end of the data; any other call raises.
    Exit(worker, job::ExitCause::Kind::kFailed);
  } else {
    AtWorker(worker, seconds(15), [this, worker] { Begin(worker); });
  }
}

void Simulation::Register(const WorkerPtr&) {
  AtMaster([this](Core& core) {
    if (!core.Register(plan_.data).ok()) Fail("the dataset was refused");
  });
}

void Simulation::Join(const WorkerPtr& worker) {
  if (worker->leaving) return;
  JoinRequest request{.replica = worker->replica, .incarnation = worker->incarnation};
  for (const auto* list : {&worker->trained, &worker->in_hand}) {
    for (const LeasedShard& shard : *list) request.held.push_back(shard.lease);
  }
  // A report that was not answered yet is not over: its lease is still held.
  if (worker->open_call) {
    for (const ShardReport& report : worker->open_call->reports) {
      request.held.push_back(report.lease);
    }
  }
  const bool lost = Lose();
  const uint64_t attempt = ++worker->join_try;
  AtMaster([this, worker, request, lost, attempt](Core& core) {
    core.our_door().Join(
        request, [this, worker, request, lost, attempt](const Result<JoinReply>& reply) {
          if (lost || !reply.ok()) return;
          AtWorker(worker, Between(1, 30), [this, worker, request, reply, attempt] {
            if (worker->join_try == attempt) OnJoined(worker, request, *reply);
          });
        });
  });
  // No answer: the next try.
  AtWorker(worker, milliseconds(1500), [this, worker, attempt, watch = worker->watch] {
    if (worker->join_try == attempt && worker->watch == watch) Join(worker);
  });
}

void Simulation::OnJoined(const WorkerPtr& worker, const JoinRequest& request,
                          const JoinReply& reply) {
  const bool first = worker->incarnation.value() == 0;
  const bool new_life = reply.incarnation != worker->incarnation;
  if (reply.incarnation != worker->incarnation) {
    worker->incarnation = reply.incarnation;
    worker->next_number = 1;
    worker->received = 0;
    worker->open_call.reset();
  }
  const std::set<LeaseId> held(reply.held.begin(), reply.held.end());
  // An answer may have crossed the Join: of what was not listed the reply says nothing.
  const std::set<LeaseId> listed(request.held.begin(), request.held.end());
  for (auto* list : {&worker->trained, &worker->in_hand}) {
    std::erase_if(*list, [&](const LeasedShard& shard) {
      return !held.contains(shard.lease) && (new_life || listed.contains(shard.lease));
    });
  }
  worker->watch = ++calls_;
  const uint64_t watch = worker->watch;
  AtMaster([this, worker, watch](Core& core) {
    const Status watching =
        core.our_door().Watch(worker->incarnation, watch, [](const Membership&) {});
    if (!watching.ok()) AtWorker(worker, milliseconds(200), [this, worker] { Join(worker); });
  });
  if (first) {
    Register(worker);
    Beat(worker);
  }
  if (worker->open_call) {
    SendExchange(worker, worker->open_call->number);
  } else if (worker->in_hand.empty()) {
    Ask(worker);
  }
}

void Simulation::Beat(const WorkerPtr& worker) {
  const bool lost = Lose();
  if (!lost) {
    AtMaster([this, worker](Core& core) {
      core.our_door().Beat(worker->incarnation, [this, worker](const Result<Done>& done) {
        if (done.status().code() == Code::kAborted) {
          AtWorker(worker, Between(1, 20), [this, worker] { Join(worker); });
        }
      });
    });
  }
  AtWorker(worker, seconds(1), [this, worker] { Beat(worker); });
}

void Simulation::Ask(const WorkerPtr& worker) {
  if (worker->open_call || worker->leaving) return;
  ExchangeRequest request{.incarnation = worker->incarnation,
                          .number = worker->next_number++,
                          .received = worker->received,
                          .dataset = Plan::kDataset,
                          .lease_at_most = static_cast<uint32_t>(Between(1, 3).count()),
                          .wait = milliseconds(8000)};
  const size_t keep = worker->ended ? 0 : worker->buffer;
  while (worker->trained.size() > keep) {
    request.reports.push_back({worker->trained.front().lease});
    worker->trained.erase(worker->trained.begin());
  }
  if (worker->ended) request.lease_at_most = 0;
  worker->open_call = request;
  SendExchange(worker, request.number);
}

void Simulation::SendExchange(const WorkerPtr& worker, uint64_t number) {
  if (!worker->open_call || worker->open_call->number != number) return;
  ExchangeRequest request = *worker->open_call;
  const int times = Faulty() && Chance() < plan_.repeat ? 2 : 1;
  for (int i = 0; i < times; ++i) {
    if (Lose()) continue;
    At(Between(1, 60), [this, worker, request] { DeliverExchange(worker, request); });
  }
  AtWorker(worker, milliseconds(12000), [this, worker, number] { SendExchange(worker, number); });
}

void Simulation::DeliverExchange(const WorkerPtr& worker, const ExchangeRequest& sent) {
  AtMaster([this, worker, sent](Core& core) {
    ExchangeRequest request = sent;
    request.call = ++calls_;
    if (mutant_ == Mutant::kNoDeduplication) {
      request.number = 1'000'000 + calls_;
      request.received = 0;
    }
    core.our_door().Exchange(request, [this, worker, sent](const Result<ExchangeReply>& reply) {
      if (Lose()) return;
      AtWorker(worker, Between(1, 60), [this, worker, sent, reply] {
        // A reply belongs to its call; one of an incarnation that was given up has no caller.
        if (worker->incarnation == sent.incarnation) OnExchange(worker, sent.number, reply);
      });
    });
  });
}

void Simulation::OnExchange(const WorkerPtr& worker, uint64_t number,
                            const Result<ExchangeReply>& reply) {
  if (!worker->open_call || worker->open_call->number != number) return;
  if (!reply.ok()) {
    if (reply.status().code() == Code::kAborted) {
      // What the call reported is lost with it, if it did not arrive before.
      AtWorker(worker, Between(1, 20), [this, worker] { Join(worker); });
    } else if (reply.status().code() != Code::kInvalidArgument) {
      Fail("an Exchange was refused: " + reply.status().ToString());
    }
    return;
  }
  if (reply->answer == Answer::kRetry) return;  // the same call waits elsewhere, or is sent again
  const bool told_end = worker->ended;
  Note(fmt::format("{} call {}: answer {} with {} shards", worker->name, number,
                   static_cast<int>(reply->answer), reply->shards.size()));
  CheckNoOrphans(*worker, *reply);
  worker->open_call.reset();
  worker->received = number;
  if (reply->answer == Answer::kFinished) worker->ended = true;
  if (reply->answer == Answer::kUnknownDataset) Register(worker);
  if (told_end) {
    worker->leaving = true;
    AtWorker(worker, Between(1, 200),
             [this, worker] { Exit(worker, job::ExitCause::Kind::kSucceeded); });
    return;
  }
  for (const LeasedShard& shard : reply->shards) worker->in_hand.push_back(shard);
  if (reply->shards.empty()) {
    Ask(worker);
    return;
  }
  Train(worker, reply->shards.front());
}

void Simulation::CheckNoOrphans(const Worker& worker, const ExchangeReply& reply) {
  if (core_ == nullptr) return;
  std::set<LeaseId> known;
  for (const auto* list : {&worker.trained, &worker.in_hand, &reply.shards}) {
    for (const LeasedShard& shard : *list) known.insert(shard.lease);
  }
  for (const auto& [id, lease] : core_->dispatcher().leases()) {
    if (lease.row.holder == worker.incarnation && !known.contains(id)) {
      Fail(fmt::format("{} does not know of its lease {}, granted by its call {}", worker.name, id,
                       lease.row.number));
    }
  }
}

void Simulation::Train(const WorkerPtr& worker, const LeasedShard& shard) {
  AtWorker(worker, Between(20, 3000), [this, worker, shard] {
    auto place = std::find_if(worker->in_hand.begin(), worker->in_hand.end(),
                              [&](const LeasedShard& other) { return other.lease == shard.lease; });
    if (place != worker->in_hand.end()) {
      ++trainings_[shard.key];
      worker->trained.push_back(shard);
      worker->in_hand.erase(place);
    }
    if (!worker->in_hand.empty()) {
      Train(worker, worker->in_hand.front());
    } else if (worker->old_door) {
      ReportOldDoor(worker, worker->buffer, [this, worker] { Fetch(worker); });
    } else {
      Ask(worker);
    }
  });
}

void Simulation::Fetch(const WorkerPtr& worker) {
  const uint64_t call = ++calls_;
  const uint64_t life = master_life_;
  worker->fetching = call;
  if (core_ == nullptr) {
    AtWorker(worker, Between(1, 20), [this, worker, call] { OnFetchError(worker, call); });
    return;
  }
  // Near the end a lost grant costs a round of its own, so only earlier ones are lost here; and
  // a client that quits on any error cannot be told from one that has had enough.
  const Dataset* dataset = core_->dispatcher().Find(Plan::kDataset);
  const bool lost = !plan_.quits_on_error && dataset != nullptr && dataset->HasMore() &&
                    dataset->row().leftover_at < 0 && Lose();
  AtMaster([this, worker, call, life, lost](Core& core) {
    core.old_door().Fetch(
        call, worker->replica, Plan::kDataset,
        [this, worker, call, life, lost](const Result<std::optional<LeasedShard>>& shard) {
          Note(fmt::format("{} fetch: {}{}{}", worker->name,
                           !shard.ok()          ? "error"
                           : shard->has_value() ? fmt::format("task {}", (*shard)->task)
                                                : "end",
                           lost ? " lost" : "", life != master_life_ ? " of a dead master" : ""));
          if (life != master_life_) return;
          if (lost || !shard.ok()) {
            AtWorker(worker, Between(1, 30), [this, worker, call] { OnFetchError(worker, call); });
            return;
          }
          AtWorker(worker, Between(1, 30),
                   [this, worker, call, shard = *shard] { OnFetched(worker, call, shard); });
        });
  });
}

void Simulation::OnFetchError(const WorkerPtr& worker, uint64_t call) {
  if (worker->fetching != call) return;
  if (plan_.quits_on_error) {
    OnFetched(worker, call, std::nullopt);
    return;
  }
  worker->fetching = 0;
  AtWorker(worker, seconds(15), [this, worker] { Fetch(worker); });
}

void Simulation::OnFetched(const WorkerPtr& worker, uint64_t call,
                           const std::optional<LeasedShard>& shard) {
  if (worker->fetching != call) return;  // the connection broke before
  worker->fetching = 0;
  if (shard) {
    worker->in_hand.push_back(*shard);
    Train(worker, *shard);
    return;
  }
  worker->ended = true;
  worker->leaving = true;
  ReportOldDoor(worker, 0, [this, worker] {
    AtWorker(worker, Between(1, 200),
             [this, worker] { Exit(worker, job::ExitCause::Kind::kSucceeded); });
  });
}

// A published client reports in order and waits for each answer; what broke is sent again.
void Simulation::ReportOldDoor(const WorkerPtr& worker, size_t keep, std::function<void()> then) {
  if (worker->trained.size() <= keep) {
    then();
    return;
  }
  const LeasedShard shard = worker->trained.front();
  const uint64_t call = ++calls_;
  worker->reporting = call;
  const auto again = [this, worker, keep, then, call] {
    if (worker->reporting == call) ReportOldDoor(worker, keep, then);
  };
  worker->report_broke = again;
  if (core_ == nullptr) {
    AtWorker(worker, seconds(15), again);
    return;
  }
  Note(fmt::format("{} reports task {}", worker->name, shard.task));
  AtMaster([this, worker, keep, then, call, shard](Core& core) {
    core.old_door().ReportTask(Plan::kDataset, shard.task, "");
    core.outbox().Add([this, worker, keep, then, call] {
      AtWorker(worker, Between(1, 5), [this, worker, keep, then, call] {
        if (worker->reporting != call) return;  // the connection broke before
        worker->reporting = 0;
        worker->trained.erase(worker->trained.begin());
        ReportOldDoor(worker, keep, then);
      });
    });
  });
}

SimulationResult Simulation::Run() {
  auto ledger = Ledger::Open(":memory:");
  CHECK(ledger.ok(), "{}", ledger.status().message());
  ledger_ = std::move(*ledger);
  At(milliseconds(0), [this] { StartMaster(); });
  At(milliseconds(1), [this] { Tick(); });
  while (!events_.empty() && !failed_) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.at;
    event.run();
    if (now_ - start_ > kGiveUpAfter) Fail("the job does not end");
    if (core_ != nullptr && job::IsFinal(core_->state())) break;
  }
  result_.virtual_seconds = std::chrono::duration<double>(now_ - start_).count();
  if (!failed_ && (core_ == nullptr || core_->state() != job::JobState::kSucceeded)) {
    Fail(fmt::format("the job ended as {}: {}",
                     core_ == nullptr ? "nothing" : job::NameOf(core_->state()),
                     core_ == nullptr ? "" : core_->View().reason));
  }
  if (!failed_ && core_->dispatcher().Find(Plan::kDataset) == nullptr) {
    Fail("the job succeeded, and nobody ever registered its dataset");
  }
  if (!failed_) {
    const Dataset* dataset = core_->dispatcher().Find(Plan::kDataset);
    const job::DatasetView view = dataset->View();
    const bool quiet =
        result_.kills + result_.freezes + result_.lost_messages + result_.master_crashes == 0;
    if (view.records_done != view.records_total) {
      Fail(fmt::format("{} of {} records were completed", view.records_done, view.records_total));
      LOG_INFO("{}", core_->LedgerJson().value());
    }
    for (int64_t epoch = 0; epoch < plan_.data.epochs; ++epoch) {
      for (uint64_t ordinal = 0; ordinal < dataset->shards_per_epoch(); ++ordinal) {
        const int times = trainings_[{epoch, ordinal}];
        const auto leases = static_cast<int>(leases_[{epoch, ordinal}].size());
        if (times < 1 || times > leases || (quiet && leases > 1)) {
          Fail(fmt::format("shard {}/{} was trained {} times under {} leases", epoch, ordinal,
                           times, leases));
        }
      }
    }
  }
  result_.ok = !failed_;
  return result_;
}

}  // namespace

SimulationResult Simulate(uint64_t seed) { return Simulation(seed, Mutant::kNone).Run(); }

SimulationResult SimulateMutant(uint64_t seed, Mutant mutant) {
  return Simulation(seed, mutant).Run();
}

}  // namespace edl::master
