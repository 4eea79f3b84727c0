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
#include "master/types.h"

namespace edl::master {

// The processes of the parameter servers of a simulated job. They start, freeze and die. The
// backend does not notice some deaths, and reports some processes dead that still run. Confined.
class SimulatedServers {
 public:
  struct Layout {
    size_t servers = 1;
    size_t lanes = 1;  // of each
    bool operator==(const Layout&) const = default;
  };
  // One process.
  struct Server {
    std::string name;
    int index = 0;
    PsIncarnation incarnation;
    Layout layout;
    bool alive = true;      // answers messages
    bool is_over = false;   // the backend believes that it has exited
    bool vanished = false;  // its machine was lost: nothing closes its connections
    bool can_stop = true;   // by the backend; false: the backend does not reach it
    Time died_at;
    Time answers_from;
    Time frozen_until;
    Time asked_at;                // last Serve or State of the master
    Time blind_until;             // it does not see the checkpoints
    Time busy_until;              // its lanes are being restored
    uint64_t progress_bytes = 0;  // as wire::Welcome says
    std::vector<std::unique_ptr<SimulatedLane>> lanes;
  };
  using ServerPtr = std::shared_ptr<Server>;  // the simulation's and its pending events'

  // The rest of the simulation.
  struct Environment {
    // The backend reports that a server runs or has exited.
    std::function<void(const job::ReplicaEvent&)> report;
    // The job is resumed with another number of servers and lanes.
    std::function<void(const Layout&)> resume_with;
  };

  // All outlive it.
  SimulatedServers(const Plan& plan, Mutant mutant, VirtualTime& time, SimulationResult& sums,
                   Environment environment);
  ~SimulatedServers() {
    // Requests that wait at a lane own the server.
    for (const ServerPtr& server : servers_) server->lanes.clear();
  }
  SimulatedServers(const SimulatedServers&) = delete;
  SimulatedServers& operator=(const SimulatedServers&) = delete;

  // Calls of the backend, by the replica's name.
  void Launch(const LaunchCommand& command);
  void Stop(const std::string& name);
  // The replicas that the backend believes to be running.
  std::vector<std::string> Running() const;
  // From now on all servers die now and then, and are relaunched, mostly with other lanes.
  void BeginMoves();

  const Layout& layout() const { return layout_; }
  const SimulatedBatches& batches() const { return batches_; }
  // True: the peer of a connection has noticed that the server is dead, because the process has
  // exited or, if its machine was lost, by keepalive.
  bool IsLost(const Server& server) const;
  // True: it refuses workers until the master contacts it again.
  bool IsFenced(const Server& server) const;
  // Returns the process that listens at a server's address; null: none.
  ServerPtr Find(size_t index) const;
  // Calls `run` after `later`, or when the server is not frozen any more; never once it is dead.
  void AtServer(const ServerPtr& server, Duration later, std::function<void()> run);

 private:
  // Starts a process in a replica.
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
  const Environment environment_;
  const SimulatedBatches batches_;
  Layout layout_;
  PsIncarnation last_incarnation_;
  std::vector<ServerPtr> servers_;  // in the order of their launches
};

}  // namespace edl::master
