#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "simulation/simulated_ps_controller.h"
#include "simulation/simulated_servers.h"
#include "simulation/simulated_trainer.h"
#include "simulation/simulation.h"
#include "simulation/simulation_plan.h"
#include "simulation/virtual_time.h"

#include "master/core.h"

namespace edl::master {

// A job in virtual time: the real core of the master over a real ledger in memory, and simulated
// workers, parameter servers and backend around it.
//
// Confined to the thread that runs the simulation.
class SimulatedJob {
 public:
  SimulatedJob(uint64_t seed, Mutant mutant);
  ~SimulatedJob() {
    // report_broke owns its worker: without this neither would be freed.
    for (const auto& [name, worker] : workers_) worker->report_broke = nullptr;
  }
  SimulatedJob(const SimulatedJob&) = delete;
  SimulatedJob& operator=(const SimulatedJob&) = delete;

  SimulationResult Run();

 private:
  // One process of a worker.
  struct Worker {
    std::string name;
    ReplicaRef replica;
    bool compat_api = false;
    bool alive = true;
    Time frozen_until;
    Time cut_off_until;  // from the master
    Incarnation incarnation;
    uint64_t next_number = 1;
    uint64_t received = 0;
    uint64_t watch = 0;
    uint64_t join_try = 0;
    std::optional<ReportAndLeaseRequest> open_call;  // not answered yet
    std::vector<LeasedShard> trained;                // in order, not reported yet
    std::vector<LeasedShard> in_hand;                // leased and being trained
    // With parameter servers:
    bool training = false;
    std::vector<LeasedShard> reported;  // by the open call
    std::map<LeaseId, PsEpoch> epochs;  // of the servers that trained each lease
    PsEpoch ps_epoch;                   // in the last answer of the master
    std::shared_ptr<SimulatedTrainer::Connections> connections =
        std::make_shared<SimulatedTrainer::Connections>();
    size_t buffer = 0;  // trained shards that it reports only at the end
    bool ended = false;
    bool leaving = false;
    // At the compatibility API, calls without an answer: their numbers; 0: none.
    bool registering = false;
    uint64_t fetching = 0;
    uint64_t reporting = 0;
    std::function<void()> report_broke;  // called when the report fails
  };
  using WorkerPtr = std::shared_ptr<Worker>;  // the simulation's and its pending events'

  // --- time ---
  double Chance() { return time_.Chance(); }
  std::chrono::milliseconds Between(int low, int high) { return time_.Between(low, high); }
  void At(Duration later, std::function<void()> run) { time_.At(later, std::move(run)); }
  bool Faulty() const { return time_.Faulty(); }
  bool Lose() { return time_.Lose(); }
  void Fail(const std::string& what) { time_.Fail(what); }
  Time now() const { return time_.now(); }
  void AddServers();

  // --- master ---
  void StartMaster();
  void CrashMaster();
  // Runs now or, if the master is stalled, in order when it continues.
  void AtMaster(const std::function<void(Core&)>& work);
  void RunAtMaster(const std::function<void(Core&)>& work);
  void RunHeld();
  void Step();
  void Tick();
  void MayReset();
  void CheckInvariants();
  void CheckEnd();

  // --- backend ---
  void Execute(const Command& command);
  void Launch(const LaunchCommand& command);
  void Exit(const WorkerPtr& worker, job::ExitCause::Kind kind);
  void Report(const job::ReplicaEvent& event);
  void KeepSessionOfDead(const WorkerPtr& worker);

  // --- workers ---
  // Calls `run` after `later`, or when the worker is not frozen any more; never once it is dead.
  void AtWorker(const WorkerPtr& worker, Duration later, std::function<void()> run);
  bool CutOff(const Worker& worker) const { return now() < worker.cut_off_until; }
  void Begin(const WorkerPtr& worker);
  void OnRegisterError(const WorkerPtr& worker);
  void Register(const WorkerPtr& worker);
  void Join(const WorkerPtr& worker);
  void OnJoined(const WorkerPtr& worker, const JoinRequest& request, const JoinReply& reply);
  // Fails if the master believes that the worker holds a lease that the worker does not know.
  void CheckNoOrphans(const Worker& worker, const ReportAndLeaseReply& reply);
  void Heartbeat(const WorkerPtr& worker);
  void Ask(const WorkerPtr& worker);
  void SendReportAndLease(const WorkerPtr& worker, uint64_t number);
  void DeliverReportAndLease(const WorkerPtr& worker, const ReportAndLeaseRequest& request);
  void OnReportAndLease(const WorkerPtr& worker, uint64_t number,
                        const Result<ReportAndLeaseReply>& reply);
  void Fetch(const WorkerPtr& worker);
  void OnFetched(const WorkerPtr& worker, uint64_t call, const std::optional<LeasedShard>& shard);
  void OnFetchError(const WorkerPtr& worker, uint64_t call);
  // Reports all trained shards but the last `keep`.
  void ReportCompatApi(const WorkerPtr& worker, size_t keep, std::function<void()> then);
  void Train(const WorkerPtr& worker, const LeasedShard& shard);
  void Push(const WorkerPtr& worker, const LeasedShard& shard);  // Train with parameter servers
  void NextFaults(const WorkerPtr& worker);

  const uint64_t seed_;
  const Mutant mutant_;
  VirtualTime time_;
  const Plan plan_;
  job::JobSpec spec_;
  SimulationResult result_;

  std::optional<Ledger> ledger_;
  std::unique_ptr<Core> core_;
  uint64_t master_life_ = 0;
  uint64_t calls_ = 0;
  Time stalled_until_ = time_.now();
  // Work that waits for a stalled master, with the incarnation of the master that it is for.
  std::vector<std::pair<uint64_t, std::function<void(Core&)>>> held_;

  std::map<std::string, WorkerPtr> workers_;
  std::optional<SimulatedServers> servers_;
  std::optional<SimulatedPsController> ps_controller_;
  std::optional<SimulatedTrainer> trainer_;
  std::map<std::string, job::ReplicaEvent> exits_;  // until acknowledged
  std::map<ShardPosition, int> trainings_;          // how often each shard was trained completely
  std::map<ShardPosition, std::set<LeaseId>> leases_;  // all leases that a shard ever had
};

}  // namespace edl::master
