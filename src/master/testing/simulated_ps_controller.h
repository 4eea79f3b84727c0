#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "master/core.h"
#include "master/testing/simulated_servers.h"

namespace edl::master {

// Carries out what the simulated master asks of its parameter servers, as
// ps_control::PsController does, and keeps their checkpoints. What is under way when the master
// dies goes on, and may come after what its next life asks; answers go to the life that asked.
// Confined.
class SimulatedPsController {
 public:
  struct Master {
    std::function<uint64_t()> life;  // 0: it does not run
    std::function<void(std::function<void(Core&)>)> run;
  };

  // All outlive it.
  SimulatedPsController(const Plan& plan, Mutant mutant, SimulatedServers& servers,
                        VirtualTime& time, SimulationResult& sums, Master master);

  void Do(const std::vector<ServerCommand>& commands);

  // After each commit: what the newest checkpoint says that it covers, it has, and once.
  void CheckNewest(Core& core);
  // At the end a checkpoint has everything.
  void CheckAll(Core& core);

 private:
  // Lanes that are asked the same: answered when all have answered, or when one cannot.
  struct Asking {
    uint64_t number = 0;                            // of what was asked
    uint64_t life = 0;                              // of the master that asked
    std::vector<SimulatedServers::ServerPtr> open;  // once for each lane that has not answered
    std::vector<SimulatedPart> parts;               // Save
    std::function<void(const Status&)> done;        // null when it was called
  };
  using AskingPtr = std::shared_ptr<Asking>;  // its lanes' answers'
  struct Checkpoint {
    std::vector<SimulatedPart> parts;
    bool damaged = false;
  };

  Duration Delay();
  // How long a lane works on what a quick disk does within `at_most` milliseconds.
  Duration DiskTime(int at_most);
  void Answer(uint64_t life, std::function<void(Core&)> answer);
  Result<SimulatedServers::ServerPtr> Probe(size_t index) const;
  void Carry(const ProbeServer& probe, uint64_t life);
  void Carry(const RestoreServers& restore, uint64_t life);
  void Carry(const SaveAll& save, uint64_t life);
  void Carry(const DropCheckpoint& drop, uint64_t life);
  void Carry(const CancelSave& cancel, uint64_t life);
  void Carry(const CollectOrphans& collect, uint64_t life);
  void RestoreLane(const AskingPtr& asking, const SimulatedServers::ServerPtr& server, size_t lane,
                   const RestoreServers& restore);
  Status Restore(const SimulatedServers::Server& server, SimulatedLane& lane,
                 const RestoreServers& restore);
  void OnRestored(Core& core, const RestoreServers& restore, const Status& status);
  void OnSaved(Core& core, const SaveAll& save, const Status& status);
  void End(const AskingPtr& asking, const Status& status);
  void OnLane(const AskingPtr& asking, const SimulatedServers::ServerPtr& server,
              const Status& status);
  void Watch(const AskingPtr& asking);
  void LookAfterAll(uint64_t life);
  void LookAfter(size_t index, uint64_t life);
  void TellServe(const SimulatedServers::ServerPtr& server);
  void OnNewCheckpoint(const std::string& name);
  // A checkpoint has each batch of the shards that `expected` names once in each bucket.
  void Check(Core& core, const std::string& name,
             const std::function<bool(int64_t, uint64_t)>& expected);
  bool HasOnce(const Checkpoint& checkpoint, size_t batch) const;

  const Plan& plan_;
  const Mutant mutant_;
  SimulatedServers& servers_;
  VirtualTime& time_;
  SimulationResult& sums_;
  const Master master_;
  std::map<std::string, Checkpoint> disk_;
  std::weak_ptr<Asking> saving_;     // the last save
  std::weak_ptr<Asking> restoring_;  // the last restore
  int good_since_damage_ = 0;
  std::string durable_;          // the last that had everything
  std::string newest_;           // that was checked
  std::set<std::string> known_;  // that were ever committed

  // Identifies one life of the master.
  uint64_t life_ = 0;
  std::optional<ServeAll> serve_;
  uint64_t serve_number_ = 0;          // rises over all lives
  std::map<uint64_t, uint64_t> told_;  // serve_number_ by incarnation
};

}  // namespace edl::master
