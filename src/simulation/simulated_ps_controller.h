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

// Runs the controller of parameter servers for each incarnation of a simulated master. The
// controller is the class that runs in production; network and storage are simulated. A controller
// ends with its master. Messages that it has sent still arrive, perhaps after messages of its
// successor.
//
// Confined to the thread that runs the simulation.
class SimulatedPsController {
 public:
  struct Master {
    std::function<uint64_t()> life;  // the number of its incarnation; 0: it does not run
    // Runs the function on the master, later if the master is stalled.
    std::function<void(std::function<void(Core&)>)> run;
  };

  // All references outlive this object.
  SimulatedPsController(const Plan& plan, Mutant mutant, SimulatedServers& servers,
                        VirtualTime& time, SimulationResult& sums, Master master);
  ~SimulatedPsController();
  SimulatedPsController(const SimulatedPsController&) = delete;
  SimulatedPsController& operator=(const SimulatedPsController&) = delete;

  // An incarnation of the master starts: creates its controller.
  void Start();
  // The master crashes: destroys the controller. What the controller waits for is dropped.
  void Crash();
  // Carries out commands of the master. REQUIRES: the master runs.
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
