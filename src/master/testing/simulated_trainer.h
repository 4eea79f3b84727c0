#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "master/testing/simulated_servers.h"
#include "master/types.h"
#include "wire/messages.h"

namespace edl::master {

// How simulated workers push a shard to all lanes, as elasticdl/shard_trainer.py does over
// messages that are late, lost and repeated. Confined.
class SimulatedTrainer {
 public:
  // A worker in the middle of a shard.
  struct Worker {
    std::function<void(Duration, std::function<void()>)> later;  // when it is able to
    std::function<bool(LeaseId)> holds;
  };
  // The epoch of the servers in which all have it; none: the shard is another's.
  using OnTrained = std::function<void(std::optional<uint64_t>)>;

  // All outlive it.
  SimulatedTrainer(const Plan& plan, SimulatedServers& servers, VirtualTime& time)
      : plan_(plan), servers_(servers), time_(time) {}

  void Train(Worker worker, const LeasedShard& shard, OnTrained on_trained);

 private:
  using ServerPtr = SimulatedServers::ServerPtr;
  struct Link {
    size_t server = 0;
    size_t lane = 0;
    ServerPtr to;
    Time last;  // what is sent on a connection comes in order
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
    SimulatedServers::Layout layout;
    std::vector<Link> links;
    uint64_t sent = 0;  // batches, in this attempt
    bool computing = false;
  };
  using TrainingPtr = std::shared_ptr<Training>;  // its pending events'

  void Begin(const TrainingPtr& training);
  void Tick(const TrainingPtr& training);
  void End(const TrainingPtr& training, std::optional<uint64_t> epoch);
  void Resend(const TrainingPtr& training, size_t link);
  // All that was sent comes once more, when nobody waits for it any more.
  void Replay(const TrainingPtr& training);
  void SendOpen(const TrainingPtr& training, size_t link);
  void SendPush(const TrainingPtr& training, size_t link, uint64_t batch);
  void OnOpened(const TrainingPtr& training, size_t link, const Result<wire::OpenAnswer>& answer);
  void OnPushed(const TrainingPtr& training, size_t link, uint64_t batch,
                const wire::PushAnswer& answer);
  void PushMore(const TrainingPtr& training);
  // Runs `handle` at the lane once, never or twice.
  void Send(const TrainingPtr& training, size_t link,
            const std::function<void(SimulatedLane&)>& handle);
  // Runs `handle` at the worker, if it still waits for it.
  void Answer(const TrainingPtr& training, uint64_t attempt, std::function<void()> handle);

  const Plan& plan_;
  SimulatedServers& servers_;
  VirtualTime& time_;
};

}  // namespace edl::master
