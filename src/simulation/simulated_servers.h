#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "simulation/simulated_lane.h"
#include "simulation/simulation.h"
#include "simulation/simulation_plan.h"
#include "simulation/virtual_time.h"

#include "base/clock.h"
#include "job/replica.h"
#include "master/replicas/replica_keeper.h"

namespace edl::master {

// The processes of the parameter servers of a simulated job: they come, freeze and die, some of
// them without being noticed, some noticed without being dead. Confined.
class SimulatedServers {
 public:
  // How many there are: all of them have the same number of lanes.
  struct Layout {
    size_t servers = 1;
    size_t lanes = 1;  // of each
    bool operator==(const Layout&) const = default;
  };
  // One life.
  struct Server {
    std::string name;
    int index = 0;
    uint64_t incarnation = 0;
    Layout layout;
    bool alive = true;      // answers those who reach it
    bool is_over = false;   // for the backend
    bool vanished = false;  // its machine is gone: its connections end by no word of it
    bool can_stop = true;   // by the backend, which else has to find out by itself
    Time died_at;
    Time answers_from;
    Time frozen_until;
    Time asked_at;                // by the master, how it is
    Time blind_until;             // it does not see the checkpoints
    Time busy_until;              // its lanes are being restored
    uint64_t progress_bytes = 0;  // as wire::Welcome says
    std::vector<std::unique_ptr<SimulatedLane>> lanes;
  };
  using ServerPtr = std::shared_ptr<Server>;  // the simulation's and its pending events'

  // What it needs of the rest of the simulation.
  struct Environment {
    // The backend tells that one came or went.
    std::function<void(const job::ReplicaEvent&)> tell;
    // The job is resumed with another number of servers and lanes.
    std::function<void(const Layout&)> resume_with;
  };

  // All outlive it.
  SimulatedServers(const Plan& plan, Mutant mutant, VirtualTime& time, SimulationResult& sums,
                   Environment surroundings);
  ~SimulatedServers() {
    // What waits at a lane knows the server.
    for (const ServerPtr& server : servers_) server->lanes.clear();
  }
  SimulatedServers(const SimulatedServers&) = delete;
  SimulatedServers& operator=(const SimulatedServers&) = delete;

  // From the backend, by the replica's name.
  void Launch(const LaunchCommand& command);
  void Stop(const std::string& name);
  // What the backend believes to be running.
  std::vector<std::string> Running() const;
  // Makes all die now and then, to come back with other lanes.
  void BeginMoves();

  const Layout& layout() const { return layout_; }
  const SimulatedBatches& batches() const { return batches_; }
  // The other end of a connection knows that there is nobody any more: by the end of the process,
  // or, if the machine is gone, by keepalive.
  bool IsLost(const Server& server) const;
  // It serves nobody until the master asks it again.
  bool IsFenced(const Server& server) const;
  // Who answers at a server's address; null: nobody.
  ServerPtr Find(size_t index) const;
  // Runs when the message arrives and the server is able to: never if it is dead.
  void AtServer(const ServerPtr& server, Duration later, std::function<void()> run);

 private:
  // A process that runs in a replica from now on.
  void Begin(const std::string& name, int index);
  void NextFaults(const ServerPtr& server);
  void Kill(const ServerPtr& server);
  void End(const ServerPtr& server, Duration noticed_after);
  void Die(const ServerPtr& server);
  void Freeze(const ServerPtr& server);
  void Move();

  const Plan& plan_;
  const Mutant mutant_;
  VirtualTime& time_;
  SimulationResult& sums_;
  const Environment surroundings_;
  const SimulatedBatches batches_;
  Layout layout_;
  uint64_t last_incarnation_ = 0;
  std::vector<ServerPtr> servers_;  // in the order of their launches
};

}  // namespace edl::master
