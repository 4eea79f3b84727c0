#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/host_port.h"
#include "base/status.h"
#include "ps_client/ask.h"
#include "ps_client/keys.h"
#include "ps_client/lane_channel.h"
#include "ps_client/ready_set.h"
#include "ps_client/tensor_layout.h"
#include "wire/messages.h"
#include "wire/placement.h"

namespace edl::ps_client {

using ServerAddress = HostPort;

struct ClientOptions {
  std::vector<ServerAddress> servers;  // all of the job, in the order of their indices
  std::string token;
  std::string caller = "a client";
  using Transport = ps_client::Transport;
  Transport transport = Transport::kTcp;
  // A request fails when the server that owes its answer brings nothing for so long, whether it
  // cannot be reached, does not answer or keeps the request waiting.
  Duration timeout = std::chrono::minutes(10);
  // A server that owes an answer and is silent for so long is asked on a second connection.
  Duration silence = std::chrono::seconds(10);
  // True: a server that was started anew is as good as the one before, because a master restores
  // it. False: it lacks what this client trained, and requests to it fail with Aborted once.
  bool follows_restarts = false;
  // Counts the servers that were found to be started anew. Outlives the client.
  std::atomic<uint64_t>* restarts = nullptr;
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

// The version of each lane when parameters were pulled; a lane counts its pushes.
using Versions = std::vector<uint64_t>;

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
  // Versions of the parameters that the batch was computed with, from WaitPull. Null: those of the
  // last pull that made rows, of whichever batch.
  const Versions* versions = nullptr;
};

struct PushResult {
  using Outcome = wire::PushAnswer::Outcome;
  // kApplied: every bucket has the batch. Else the worst that a lane said.
  Outcome outcome = Outcome::kApplied;
  uint64_t mark = 0;     // the lowest of all lanes
  bool refused = false;  // its gradients were no numbers, and it changed nothing
};

// Pulls and pushes parameters of all servers of a job. Operations are started, many at a time, and
// waited for in any order; they move only in calls of this object. A server that is away is waited
// for, `timeout` at most, and asked again what it did not answer (LaneChannel).
//
// Operations fail with: Unavailable, DeadlineExceeded: a server brought nothing for `timeout`.
// Aborted: a server was started anew (ClientOptions::follows_restarts). ResourceExhausted: a lane's
// share is larger than a frame may be. Others are a server's refusals.
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
  // Sets `versions`, unless it is null, to those of the parameters that were pulled.
  Status WaitPull(Ticket ticket, Versions* versions = nullptr);

  // Opens a shard at all lanes.
  struct Opened {
    uint64_t mark = 0;  // the first batch that a bucket lacks
    // The lowest of all lanes: what a report of the shard names. 0: they have no master.
    uint64_t ps_epoch = 0;
  };
  // A lane that serves an epoch below `at_least_epoch` was replaced by its master and does not know
  // it: it is dialled again, with backoff, until its successor answers. Aborted: the lease is over.
  Ticket StartOpen(uint64_t lease, const wire::ShardKey& shard, uint64_t at_least_epoch = 0);
  Result<Opened> WaitOpen(Ticket ticket);
  Result<Opened> Open(uint64_t lease, const wire::ShardKey& shard, uint64_t at_least_epoch = 0) {
    return WaitOpen(StartOpen(lease, shard, at_least_epoch));
  }
  // Batches of a shard are started in order. One whose gradients are not all numbers is counted and
  // changes nothing.
  Ticket StartPush(const PushSpec& spec);
  Result<PushResult> WaitPush(Ticket ticket);

  // For callers that wait for other things, too. Moves what is under way as far as it goes at once.
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
  // them. Tells how many rows. DataLoss: the checkpoint is damaged.
  Result<uint64_t> Restore(const std::filesystem::path& folder);
  // These servers have what this client trained, as far as anybody has: they are no error any more
  // (ClientOptions::follows_restarts). Restore does it by itself.
  void Expect(const std::vector<uint64_t>& incarnations);

  const wire::Placement& placement() const { return placement_; }
  // The incarnation of each server at its last answer.
  const std::vector<uint64_t>& incarnations() const { return incarnations_; }
  // Servers that are reached through shared memory now, by at least one lane.
  size_t servers_through_shared_memory() const;

 private:
  struct LaneRequest {
    size_t lane = 0;
    Request request;
  };
  struct Operation {
    std::deque<LaneRequest> requests;  // at least one to each lane
    size_t remaining = 0;              // requests that are not done
    Status failure;                    // why nothing was sent
    bool refused = false;
    bool makes_rows = false;
    // For an Open.
    uint64_t at_least_epoch = 0;
    Time since{};
    int rounds = 0;
  };

  // Asks every lane on a connection of its own, and waits for all.
  Result<std::vector<LaneAnswer>> AskAll(wire::MessageType type,
                                         const std::vector<std::string>& metas);

  Client(ClientOptions options, const Clock& clock, size_t lanes_each,
         std::vector<uint64_t> incarnations, ReadySet ready);

  // Adds a request to a lane.
  static Request& Add(Operation& operation, size_t lane, wire::MessageType type);
  Ticket Start(std::unique_ptr<Operation> operation);
  // Finds what no lane would take.
  Status CheckSizes(const Operation& operation) const;
  // Until all of its requests are answered. The first refusal.
  Result<std::unique_ptr<Operation>> Wait(Ticket ticket);
  void MoveLane(size_t lane);
  // Asks lanes again that answered an Open with an epoch that is over.
  void ReviewOpens();
  void ReviewOpen(Operation& operation);
  // Adds the part of a tensor that belongs to a lane.
  void AddTensor(size_t tensor, size_t lane, const float* values, Tensors& tensors) const;
  void AddPulls(const PullSpec& spec, size_t lane, Operation& operation) const;
  // That a message may carry, beside its meta part.
  size_t MostTensorBytes() const;
  bool AllFinite(const PushSpec& spec) const;

  const ClientOptions options_;
  const Clock& clock_;
  const size_t lanes_each_;
  const wire::Placement placement_;
  Parameters parameters_;
  std::vector<TensorLayout> layouts_;  // of the tensors
  Versions versions_;                  // of the last pull that made rows
  ReadySet ready_;
  std::vector<std::unique_ptr<LaneChannel>> lanes_;
  Time next_move_ = Time::max();  // no lane has to be moved before it, unless it is ready
  std::map<Ticket, std::unique_ptr<Operation>> operations_;
  std::vector<Ticket> opens_;  // that name an epoch
  Ticket last_ticket_ = 0;
  std::vector<uint64_t> incarnations_;
  std::vector<uint64_t> restarted_;  // the incarnation of each server that was counted
};

}  // namespace edl::ps_client
