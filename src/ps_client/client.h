#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ps_client/ask.h"
#include "ps_client/keys.h"
#include "ps_client/link.h"

#include "base/clock.h"
#include "base/status.h"
#include "wire/messages.h"
#include "wire/placement.h"

namespace edl::ps_client {

struct ServerAddress {
  std::string host;
  uint16_t port = 0;
};

struct ClientOptions {
  std::vector<ServerAddress> servers;  // all of the job, in the order of their indices
  std::string token;
  std::string caller = "a client";
  // kAuto: shared memory with each server that can be reached so, else TCP.
  enum class Transport { kTcp, kSharedMemory, kAuto };
  Transport transport = Transport::kTcp;
  // How long a server may be away before waiting for it fails.
  Duration patience = std::chrono::minutes(10);
  wire::FrameLimits limits;
  // Outlives the client. Once it is true all that waits fails with Cancelled within a moment, and
  // the client can only be destroyed.
  const std::atomic<bool>* stop = nullptr;
};

// What the client speaks of.
struct Parameters {
  struct Tensor {
    std::string name;
    size_t size = 0;
  };
  std::string text;                // docs/formats/parameters.md
  std::vector<size_t> table_dims;  // of its tables, in order
  std::vector<Tensor> tensors;     // of its tensors, in order
};

// Tables and tensors are numbers: their places in Parameters. Memory that is named stays the
// caller's and is not touched by it until the operation was waited for.
struct TablePull {
  size_t table = 0;
  const Keys* keys = nullptr;
  float* rows = nullptr;  // a row for each of keys->ids()
};
struct TensorPull {
  size_t tensor = 0;
  float* values = nullptr;
};
struct PullSpec {
  wire::Pull::Unknown unknown = wire::Pull::Unknown::kMake;
  std::vector<TablePull> tables;
  std::vector<TensorPull> tensors;
};

struct TablePush {
  size_t table = 0;
  const Keys* keys = nullptr;
  const float* gradients = nullptr;  // one for each of keys->ids()
  float learning_rate = 0;
};
struct TensorPush {
  size_t tensor = 0;
  const float* gradients = nullptr;
  float learning_rate = 0;
};
struct PushSpec {
  uint64_t lease = 0;
  wire::ShardKey shard;
  uint64_t batch = 0;
  std::vector<TablePush> tables;
  std::vector<TensorPush> tensors;
};

struct PushResult {
  using Outcome = wire::PushAnswer::Outcome;
  // kApplied: every bucket has the batch. Else the worst that a lane said.
  Outcome outcome = Outcome::kApplied;
  uint64_t mark = 0;     // the lowest of all lanes
  bool refused = false;  // its gradients were no numbers, and it changed nothing
};

// Pulls and pushes parameters of all servers of a job. Operations are started, many at a time, and
// waited for in any order; what is under way moves in calls of this object alone. A server that is
// away is waited for and told again what it did not answer.
//
// Confined.
class Client {
 public:
  using Ticket = uint64_t;

  // Waits for all servers. `clock` outlives it. FailedPrecondition: they are not those of one job,
  // in this order. Unauthenticated: the token is not theirs.
  static Result<std::unique_ptr<Client>> Connect(ClientOptions options, const Clock& clock);

  // Once, before all below. Fails like Lane::Declare on the server.
  Status Declare(Parameters parameters);

  // Gives tensors without a value theirs. Tells how many blocks had none.
  Result<size_t> Put(const std::vector<TensorPush>& tensors);

  Ticket StartPull(const PullSpec& spec);
  Status WaitPull(Ticket ticket);

  // Opens a shard at all lanes.
  struct Opened {
    uint64_t mark = 0;  // the first batch that a bucket lacks
    // The lowest of all lanes: what a report of the shard names. 0: they have no master.
    uint64_t ps_epoch = 0;
  };
  Result<Opened> Open(uint64_t lease, const wire::ShardKey& shard);
  // Batches of a shard are started in order, each computed with what was last waited for in
  // WaitPull. One whose gradients are not all numbers is counted and
  // changes nothing.
  Ticket StartPush(const PushSpec& spec);
  Result<PushResult> WaitPush(Ticket ticket);

  // For who has other things to wait for. Moves what is under way as far as it goes at once.
  void Move();
  // Whether the operation, which was not waited for, can be without waiting.
  bool IsDone(Ticket ticket) const;
  // Until something under way can be moved or `wake` can be read.
  void WaitToMove(int wake);

  // Closes synchronous rounds that are open, with what they have.
  Status Flush();
  // Saves all parameters, as they are at about this moment, to a folder that all servers and this
  // process can write; it is a checkpoint once this returns. Pulls and pushes of others go on.
  struct SaveResult {
    uint64_t bytes = 0;
    double seconds = 0;
    double longest_pause_seconds = 0;  // of any lane, at a time
  };
  Result<SaveResult> Save(const std::filesystem::path& folder);
  // Gives servers that have nothing yet the parameters of a checkpoint, saved by any number of
  // them. Tells how many rows. DataLoss: it is damaged, and the servers are to be started anew.
  Result<uint64_t> Restore(const std::filesystem::path& folder);

  const wire::Placement& placement() const { return placement_; }
  // Of each server, as it was when it answered last.
  const std::vector<uint64_t>& incarnations() const { return incarnations_; }

 private:
  // One request to each lane.
  struct Operation {
    std::vector<Request> requests;
    bool refused = false;
  };
  // A lane's connection, and since when it is lost.
  struct Lane {
    Link link;
    std::optional<Time> lost_since;
    Time next_attempt;
  };

  // Asks every lane on a connection of its own, and waits for all.
  Result<std::vector<LaneAnswer>> AskAll(wire::MessageType type,
                                         const std::vector<std::string>& metas);

  // `shared` says of each server whether it is reached through shared memory.
  Client(ClientOptions options, const Clock& clock, size_t lanes_each,
         const std::vector<bool>& shared);

  Operation MakeOperation(wire::MessageType type) const;
  Ticket Start(std::unique_ptr<Operation> operation);
  // Until all of its requests are answered. The first refusal.
  Result<std::unique_ptr<Operation>> Wait(Ticket ticket);
  void Pump(Lane& lane);
  // Adds the blocks of a tensor that belong to a lane.
  void AddBlocks(const Parameters::Tensor& tensor, size_t lane, const float* values,
                 Tensors& tensors) const;
  bool AreNumbers(const PushSpec& spec) const;

  const ClientOptions options_;
  const Clock& clock_;
  const size_t lanes_each_;
  const wire::Placement placement_;
  Parameters parameters_;
  std::vector<uint64_t> versions_;  // of each lane, when it was last pulled from
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::map<Ticket, std::unique_ptr<Operation>> operations_;
  Ticket last_ticket_ = 0;
  std::vector<uint64_t> incarnations_;
};

}  // namespace edl::ps_client
