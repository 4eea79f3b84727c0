#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "simulation/simulated_servers.h"

#include "master/types.h"
#include "wire/messages.h"

namespace edl::master {

// How simulated workers push a shard to all lanes, as elasticdl/shard_trainer.py and src/ps_client
// do. It is no kinder than they are: a connection lasts over shards and over opening one again; a
// request is sent again only after its connection was lost or given up. The worker notices a loss
// at once where a process ended, and by keepalive where a machine vanished. If a server owes an
// answer and is silent, the worker connects to its address again: if no server or another one
// answers, it gives up the first connection. It also gives up a connection whose server answers
// with an older epoch than the master's.
//
// Confined to the thread that runs the simulation.
class SimulatedTrainer {
 public:
  using ServerPtr = SimulatedServers::ServerPtr;
  // A connection of a worker's process to a lane.
  struct Connection {
    ServerPtr to;         // null: there is none
    uint64_t number = 0;  // of this connection
    Time last;            // what is sent on a connection comes in order
    Time heard_at;        // the last answer; while none is owed, now
    // It is broken, and the worker will know from then on.
    std::optional<Time> lost_at;
    Time dial_at;  // not before
    std::chrono::milliseconds backoff{100};
  };
  // The connections of one process, by the lane's place.
  struct Connections {
    SimulatedServers::Layout layout;
    std::vector<Connection> lanes;
  };

  // A worker in the middle of a shard.
  struct Worker {
    std::function<void(Duration, std::function<void()>)> later;  // when it is able to
    std::function<bool(LeaseId)> holds;
    std::function<PsEpoch()> ps_epoch;  // of the last answer of the master
    std::shared_ptr<Connections> connections;
  };
  // The epoch of the servers in which all have it; none: the shard is another's.
  using OnTrained = std::function<void(std::optional<PsEpoch>)>;

  // All outlive it.
  SimulatedTrainer(const Plan& plan, Mutant mutant, SimulatedServers& servers, VirtualTime& time,
                   SimulationResult& sums)
      : plan_(plan), mutant_(mutant), servers_(servers), time_(time), sums_(sums) {}

  void Train(Worker worker, const LeasedShard& shard, OnTrained on_trained);

 private:
  // What was said to a lane of the shard, and answered.
  struct Talk {
    std::optional<wire::OpenAnswer> opened;
    uint64_t acknowledged = 0;  // batches, from the first on
    uint64_t answered = 0;      // a bit for each batch
  };
  struct Training {
    Worker worker;
    LeasedShard shard;
    wire::ShardKey key;
    uint64_t batches = 0;
    OnTrained on_trained;  // null when it is over
    uint64_t attempt = 0;
    std::vector<Talk> talks;  // by the lane's place
    uint64_t sent = 0;        // batches, in this attempt
    bool computing = false;

    Connection& connection(size_t place) { return worker.connections->lanes[place]; }
  };
  using TrainingPtr = std::shared_ptr<Training>;  // its pending events'

  void Begin(const TrainingPtr& training);
  void Tick(const TrainingPtr& training);
  void End(const TrainingPtr& training, std::optional<PsEpoch> epoch);
  // Dials where there is no connection, and sends what was not answered on the new one.
  void Reconnect(const TrainingPtr& training, size_t place);
  void Drop(Connection& connection);
  // Whether the worker knows that there is no use in waiting on the connection.
  bool IsOver(const TrainingPtr& training, size_t place);
  void SendUnanswered(const TrainingPtr& training, size_t place);
  // All sent messages arrive a second time, when no answer is awaited any more.
  void Replay(const TrainingPtr& training);
  void SendOpen(const TrainingPtr& training, size_t place);
  void SendPush(const TrainingPtr& training, size_t place, uint64_t batch);
  void OnOpened(const TrainingPtr& training, size_t place, const Result<wire::OpenAnswer>& answer);
  void OnPushed(const TrainingPtr& training, size_t place, uint64_t batch,
                const wire::PushAnswer& answer);
  void PushMore(const TrainingPtr& training);
  // The connection breaks: now and then the worker learns of it only by keepalive.
  void Break(Connection& connection);
  // Runs `handle` at the lane, unless the connection is lost before.
  void Send(const TrainingPtr& training, size_t place,
            const std::function<void(SimulatedLane&)>& handle);
  // Runs `handle` at the worker, if its connection is still the same and it still waits for it.
  void Answer(const TrainingPtr& training, size_t place, uint64_t connection, uint64_t attempt,
              std::function<void()> handle);

  const Plan& plan_;
  const Mutant mutant_;
  SimulatedServers& servers_;
  VirtualTime& time_;
  SimulationResult& sums_;
  uint64_t last_connection_ = 0;
};

}  // namespace edl::master
