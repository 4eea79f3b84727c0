#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "simulation/simulated_channel.h"
#include "simulation/simulated_servers.h"
#include "simulation/simulated_storage.h"
#include "simulation/virtual_time.h"

#include "master/core.h"
#include "ps_control/ps_controller_core.h"

namespace edl::master {

// Runs the controller of parameter servers of each incarnation of a simulated master: the class
// that runs in production, over a simulated network and storage. A controller ends with its master;
// what it has sent still arrives, perhaps after what its successor sends. Confined.
class SimulatedPsController {
 public:
  struct Master {
    std::function<uint64_t()> life;  // counts its incarnations; 0: it does not run
    std::function<void(std::function<void(Core&)>)> run;
  };

  // All outlive it.
  SimulatedPsController(const Plan& plan, Mutant mutant, SimulatedServers& servers,
                        VirtualTime& time, SimulationResult& sums, Master master);
  ~SimulatedPsController();
  SimulatedPsController(const SimulatedPsController&) = delete;
  SimulatedPsController& operator=(const SimulatedPsController&) = delete;

  // With its master.
  void Start();
  void Crash();
  void Do(const std::vector<ServerCommand>& commands);

  SimulatedStorage& storage() { return storage_; }

 private:
  // The controller of one incarnation of the master.
  struct Life;

  ps_control::PsControllerCore::Answers MakeAnswers();
  void Answer(std::function<void(Core&)> answer);
  void OnRestored(Core& core, const RestoreServers& restore, const Status& status);
  void OnSaved(Core& core, const SaveAll& save, const Status& status);

  const Plan& plan_;
  SimulatedServers& servers_;
  VirtualTime& time_;
  SimulationResult& sums_;
  const Master master_;
  SimulatedStorage storage_;
  SimulatedNetwork network_;
  std::unique_ptr<Life> life_;  // null: the master does not run
  // Commands of this incarnation of the master, by number.
  std::map<PsCommandId, RestoreServers> restores_;
  std::map<PsCommandId, SaveAll> saves_;
};

}  // namespace edl::master
