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
#include "job/ids.h"
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
  std::vector<ServerAddress> servers;  // all servers of the job, in the order of their indices
  std::string token;
  std::string caller = "a client";
  using Transport = ps_client::Transport;
  Transport transport = Transport::kTcp;
  // A request fails when its server makes no progress for this long, whether the server cannot be
  // reached, does not answer or delays the request.
  Duration timeout = std::chrono::minutes(10);
  // When an answer is due and its server is silent for this long, a second connection checks the
  // server.
  Duration silence = std::chrono::seconds(10);
  // True: accepts restarted servers, because a master restores them. False: a restarted server
  // lacks what this client trained, and requests to it fail with Aborted once.
  bool follows_restarts = false;
  // Counts restarts of servers. Outlives the client. May be null.
  std::atomic<uint64_t>* restarts = nullptr;
  wire::FrameLimits limits;
  // Outlives the client. May be null. Once it is true, calls that are waiting fail with Cancelled,
  // and the client can only be destroyed.
  const std::atomic<bool>* stop = nullptr;
};

// The tables and tensors that a client declares.
struct Parameters {
  struct Tensor {
    std::string name;
    size_t size = 0;
  };
  std::string text;                // JSON, docs/formats/parameters.md
  std::vector<size_t> table_dims;  // of the tables in `text`, in order
  std::vector<Tensor> tensors;     // the tensors in `text`, in order
};

// In the structs below, tables and tensors are indices into Parameters. All memory stays the
// caller's, who must not use it between the Start and the Wait of the operation.
struct TablePull {
  size_t table = 0;
  const Keys* keys = nullptr;
  float* rows = nullptr;  // one row for each of keys->ids()
};
struct TensorPull {
  size_t tensor = 0;
  float* values = nullptr;
};
// The first values of a tensor.
struct TensorValues {
  size_t tensor = 0;
  const float* values = nullptr;
};
struct PullSpec {
  wire::Pull::Unknown unknown = wire::Pull::Unknown::kMake;
  std::vector<TablePull> tables;
  std::vector<TensorPull> tensors;
};

// The version of each lane when parameters were pulled. The version of a lane is the number of
// pushes that it has applied.
using Versions = std::vector<uint64_t>;

struct TablePush {
  size_t table = 0;
  const Keys* keys = nullptr;
  const float* gradients = nullptr;  // one row for each of keys->ids()
  float learning_rate = 0;
};
struct TensorPush {
  size_t tensor = 0;
  const float* gradients = nullptr;
  float learning_rate = 0;
};
struct PushSpec {
  job::LeaseId lease;
  wire::ShardKey shard;
  uint64_t batch = 0;
  std::vector<TablePush> tables;
  std::vector<TensorPush> tensors;
  // Versions of the parameters that the batch was computed with, from WaitPull. Null: the versions
  // of the last pull that created rows.
  const Versions* versions = nullptr;
};

struct PushResult {
  // kApplied: every bucket has the batch. Otherwise the most severe outcome of all lanes.
  wire::PushOutcome outcome = wire::PushOutcome::kApplied;
  uint64_t watermark = 0;  // the lowest of all lanes
  bool refused = false;    // a gradient was NaN or infinite: the batch counts and changed nothing
};

// Pulls and pushes parameters of all servers of a job. Many operations may be in progress: start
// them with Start..., and wait for them with Wait... in any order. They make progress only in calls
// of this object. When a server is lost, the client reconnects, for at most `timeout`, and sends
// requests without an answer again (LaneChannel).
//
// Errors of operations: Unavailable, DeadlineExceeded: a server made no progress for `timeout`.
// Aborted: a server was restarted (ClientOptions::follows_restarts). ResourceExhausted: the message
// to a lane is larger than a frame may be. Others are refusals of a server.
//
// Confined.
class ParameterClient {
 public:
  using Ticket = uint64_t;

  // Connects to all servers, and waits for servers that do not run yet. `clock` outlives the
  // client. FailedPrecondition: these are not the servers of one job in the order of their indices.
  // Unauthenticated: the token is wrong.
  static Result<std::unique_ptr<ParameterClient>> Connect(ClientOptions options,
                                                          const Clock& clock);

  // Call this once, before all methods below. Fails like ps::Lane::Declare.
  Status Declare(Parameters parameters);

  // Sets the values of tensors that have none yet. Returns how many blocks had none.
  Result<size_t> Put(const std::vector<TensorValues>& tensors);

  Ticket StartPull(const PullSpec& spec);
  // Sets `*versions` to the versions of the parameters that were pulled. `versions` may be null.
  Status WaitPull(Ticket ticket, Versions* versions = nullptr);

  // Opens a shard at all lanes.
  struct Opened {
    uint64_t watermark = 0;  // the first batch that a bucket lacks
    // The lowest of all lanes, for the report of the shard. 0: the servers have no master.
    job::PsEpoch ps_epoch;
  };
  // A lane with an epoch below `at_least_epoch` was replaced by the master and does not know it:
  // the client reconnects, with backoff, until the successor answers. Aborted: the lease has ended.
  Ticket StartOpen(job::LeaseId lease, const wire::ShardKey& shard,
                   job::PsEpoch at_least_epoch = {});
  Result<Opened> WaitOpen(Ticket ticket);
  Result<Opened> Open(job::LeaseId lease, const wire::ShardKey& shard,
                      job::PsEpoch at_least_epoch = {}) {
    return WaitOpen(StartOpen(lease, shard, at_least_epoch));
  }
  // Start the batches of a shard in order. A batch with a NaN or infinite gradient is counted and
  // changes nothing (PushResult::refused).
  Ticket StartPush(const PushSpec& spec);
  Result<PushResult> WaitPush(Ticket ticket);

  // The next three are for callers that also wait for other events.
  // Makes as much progress as possible without blocking.
  void Move();
  // Whether Wait... would return without waiting. REQUIRES: Wait... was not called for the ticket.
  bool IsDone(Ticket ticket) const;
  // Blocks until an operation can make progress or the descriptor `wake` is readable.
  void WaitToMove(int wake);

  // Closes open synchronous rounds with the gradients that they have.
  Status Flush();
  // Saves the present parameters to a folder that all servers and this process can write. The
  // folder is a checkpoint when this returns. Pulls and pushes of other clients continue meanwhile.
  struct SaveResult {
    uint64_t bytes = 0;
    double seconds = 0;
    double longest_pause_seconds = 0;  // of any lane
  };
  Result<SaveResult> Save(const std::filesystem::path& folder);
  // Loads a checkpoint, which any number of servers may have saved, into servers that have no
  // parameters yet. Returns the number of rows. DataLoss: the checkpoint is damaged.
  Result<uint64_t> Restore(const std::filesystem::path& folder);
  // Accepts these incarnations of the servers from now on: they have what this client trained
  // (ClientOptions::follows_restarts). Restore calls it.
  void Expect(const std::vector<job::PsIncarnation>& incarnations);

  const wire::Placement& placement() const { return placement_; }
  // The incarnation of each server in its last answer.
  const std::vector<job::PsIncarnation>& incarnations() const { return incarnations_; }
  // Number of servers with at least one lane that is connected through shared memory.
  size_t servers_through_shared_memory() const;

 private:
  struct LaneRequest {
    size_t lane = 0;
    LinkRequest request;
  };
  struct Operation {
    std::deque<LaneRequest> requests;  // at least one for each lane
    size_t remaining = 0;              // requests that are not done
    Status failure;                    // not Ok: the requests were not sent
    bool refused = false;
    bool makes_rows = false;
    // For StartOpen only.
    job::PsEpoch at_least_epoch;
    Time since{};
    int rounds = 0;
  };

  // Sends a request to every lane on a connection of its own, and waits for all answers.
  Result<std::vector<LaneAnswer>> AskAll(wire::MessageType type,
                                         const std::vector<std::string>& metas);

  ParameterClient(ClientOptions options, const Clock& clock, size_t lanes_each,
                  std::vector<job::PsIncarnation> incarnations, ReadySet ready);

  // Adds a request to a lane.
  static LinkRequest& Add(Operation& operation, size_t lane, wire::MessageType type);
  Ticket Start(std::unique_ptr<Operation> operation);
  // ResourceExhausted: a request is larger than a frame may be.
  Status CheckSizes(const Operation& operation) const;
  // Waits until all requests of the operation are answered. Returns the first refusal.
  Result<std::unique_ptr<Operation>> Wait(Ticket ticket);
  void MoveLane(size_t lane);
  // Sends an Open again to lanes that answered it with an old epoch.
  void ReviewOpens();
  void ReviewOpen(Operation& operation);
  // Adds the blocks of a tensor that belong to a lane.
  void AddTensor(size_t tensor, size_t lane, const float* values, Tensors& tensors) const;
  void AddPulls(const PullSpec& spec, size_t lane, Operation& operation) const;
  // The largest tensor part of a message.
  size_t MostTensorBytes() const;
  bool AllFinite(const PushSpec& spec) const;

  const ClientOptions options_;
  const Clock& clock_;
  const size_t lanes_each_;
  const wire::Placement placement_;
  Parameters parameters_;
  std::vector<TensorLayout> layouts_;  // of the tensors
  Versions versions_;                  // of the last pull that created rows
  ReadySet ready_;
  std::vector<std::unique_ptr<LaneChannel>> lanes_;
  Time next_move_ = Time::max();  // no lane needs a Move() before, unless it is ready
  std::map<Ticket, std::unique_ptr<Operation>> operations_;
  std::vector<Ticket> opens_;  // with an at_least_epoch
  Ticket last_ticket_ = 0;
  std::vector<job::PsIncarnation> incarnations_;
  std::vector<job::PsIncarnation>
      restarted_;  // of each server, the last incarnation in *options_.restarts
};

}  // namespace edl::ps_client
