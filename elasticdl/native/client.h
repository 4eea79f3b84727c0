#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <unistd.h>

#include "base/clock.h"
#include "elasticdl/native/arrays.h"
#include "ps_client/client_thread.h"
#include "ps_client/parameter_client.h"

namespace edl::native {

// Detects that the process was forked after the object was made: the object's thread exists only in
// the parent, and a wait in the child would never end. REQUIRES: the GIL.
class SameProcess {
 public:
  SameProcess() : process_(getpid()) {}
  bool IsForked() const { return getpid() != process_; }
  // Throws RuntimeError in a forked process.
  void Check() const;

 private:
  const pid_t process_;
};

// The age of pulled parameters: the version of each lane. Immutable.
class PulledVersions {
 public:
  explicit PulledVersions(ps_client::Versions versions) : versions_(std::move(versions)) {}

  // The older version of each lane, for a batch that uses the parameters of two pulls.
  PulledVersions Oldest(const PulledVersions& other) const;
  const ps_client::Versions& versions() const { return versions_; }

 private:
  const ps_client::Versions versions_;
};

// The rows and tensors of a pull that was started. Thread-safe: the GIL protects it.
class Prefetch {
 public:
  struct Table {
    Table(const wire::Placement& placement, size_t its_number, size_t its_dim)
        : number(its_number), dim(its_dim), keys(placement) {}
    size_t number;
    size_t dim;
    std::vector<size_t> shape;  // of the ids
    std::vector<int64_t> ids;   // until they are assigned to keys
    ps_client::Keys keys;
    wire::Buffer rows;    // one for each of keys.ids()
    wire::Buffer places;  // of each requested id in keys.ids()
    wire::Buffer unique;  // a copy of keys.ids()
  };
  struct Tensor {
    size_t number;
    std::vector<size_t> shape;
    wire::Buffer values;
  };
  struct Wanted {
    std::vector<Table> tables;
    std::vector<Tensor> tensors;
    ps_client::Versions versions;
  };

  // `wanted` is owned by the Prefetch and by the thread that pulls it.
  Prefetch(std::shared_ptr<Wanted> wanted, std::shared_ptr<ps_client::Pending> pending,
           ArrayCount arrays)
      : wanted_(std::move(wanted)), pending_(std::move(pending)), arrays_(std::move(arrays)) {}

  bool IsDone() {
    process_.Check();
    return pending_->WaitFor(Duration::zero());
  }
  // Waits. Returns for each table a tuple (rows, index of the row of each requested id, id of each
  // row), and the tensors. Call this once.
  std::pair<nanobind::list, nanobind::list> Take();
  // REQUIRES: Take() has returned.
  PulledVersions versions() const { return PulledVersions(wanted_->versions); }

 private:
  const std::shared_ptr<Wanted> wanted_;
  const std::shared_ptr<ps_client::Pending> pending_;
  const ArrayCount arrays_;
  const SameProcess process_;
  bool taken_ = false;
};

// The memory of a push that is in progress.
struct PushState;

// A push that was started. Thread-safe: the GIL protects it.
class PendingPush {
 public:
  // The state is owned by the PendingPush and by the thread that pushes.
  PendingPush(std::shared_ptr<PushState> state, std::shared_ptr<ps_client::Pending> pending)
      : state_(std::move(state)), pending_(std::move(pending)) {}

  bool IsDone() {
    process_.Check();
    return pending_->WaitFor(Duration::zero());
  }
  // Waits. Returns what Client::Push returns.
  std::tuple<int, uint64_t, bool> Result();

 private:
  const std::shared_ptr<PushState> state_;
  const std::shared_ptr<ps_client::Pending> pending_;
  const SameProcess process_;
};

// A wire::ShardKey in Python: ledger, dataset, generation, epoch, ordinal.
using ShardTuple = std::tuple<job::LedgerId, job::DatasetId, uint32_t, uint32_t, uint64_t>;
ShardTuple TupleOf(const wire::ShardKey& key);

// ps_client::ParameterClient for Python. elasticdl/parameter_client.py checks all arguments, with
// messages for users; arguments that could cause an invalid memory access are checked here again.
//
// Methods throw the exception of a failure (native/status.h), ValueError for an argument that is
// out of range, and RuntimeError in a forked process.
//
// Thread-safe: the GIL protects it, and is released by waits and by loops over a batch. A signal
// whose handler raises ends a wait. A pull or a push then continues; Connect, Flush, Save and
// Restore are cancelled.
class Client {
 public:
  using Server = std::pair<std::string, uint16_t>;
  // Connects to all servers. `transport` is "auto", "tcp" or "shm". With `follows_restarts` the
  // client reconnects to a server that was restarted; otherwise the next call fails with ABORTED.
  Client(std::vector<Server> servers, std::string token, std::string caller,
         const std::string& transport, double timeout_seconds, bool follows_restarts);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // `dims` are those of the tables; `tensors` are names and sizes.
  void Declare(std::string text, std::vector<size_t> dims,
               const std::vector<std::pair<std::string, size_t>>& tensors);
  // Tensors by number. Returns how many blocks had no value.
  using Value = std::pair<size_t, Floats>;
  size_t Put(const std::vector<Value>& values);

  // Tables by number, each with ids of any shape.
  using TableIds = std::pair<size_t, Ids>;
  // Tensors by number, with the shape of the returned array.
  using TensorShape = std::pair<size_t, std::vector<size_t>>;
  // Returns the rows of each table, and their age. `create`: whether to create the rows of new ids.
  // Otherwise new ids get the values that they would be created with.
  std::pair<nanobind::list, PulledVersions> Pull(const std::vector<TableIds>& tables, bool create);
  std::unique_ptr<Prefetch> StartPull(const std::vector<TableIds>& tables,
                                      const std::vector<TensorShape>& tensors, bool create);
  std::pair<nanobind::list, PulledVersions> PullTensors(const std::vector<TensorShape>& tensors);

  using Shard = ShardTuple;
  // Returns the watermark of the shard, and the epoch of the servers.
  std::pair<uint64_t, job::PsEpoch> Open(job::LeaseId lease, const Shard& shard,
                                         job::PsEpoch at_least_epoch);
  // Table, ids, one gradient for each id, learning rate.
  using TableGradient = std::tuple<size_t, Ids, Floats, double>;
  using TensorGradient = std::tuple<size_t, Floats, double>;
  // Returns the outcome, the watermark, and whether the batch was refused for NaN or infinity.
  // `versions`: of the parameters that the batch was computed with; null: of the last pull.
  // `opens`: opens the shard first.
  std::tuple<int, uint64_t, bool> Push(job::LeaseId lease, const Shard& shard, uint64_t batch,
                                       const std::vector<TableGradient>& tables,
                                       const std::vector<TensorGradient>& tensors,
                                       const PulledVersions* versions, bool opens);
  // Copies the gradients.
  std::unique_ptr<PendingPush> StartPush(job::LeaseId lease, const Shard& shard, uint64_t batch,
                                         const std::vector<TableGradient>& tables,
                                         const std::vector<TensorGradient>& tensors,
                                         const PulledVersions* versions, bool opens);

  // Applies the open rounds of synchronous training, however few gradients they have.
  void Flush();
  // Saves a checkpoint to `folder`, on connections of its own: pulls and pushes continue. Returns
  // the bytes, the seconds, and the longest pause of a lane in seconds.
  std::tuple<uint64_t, double, double> Save(const std::string& folder);
  // Loads a checkpoint into servers that have no parameters yet. Returns the number of rows.
  uint64_t Restore(const std::string& folder);
  // Ends the thread and the connections. Later calls fail with CANCELLED. May be called again.
  void Close();

  // The number of arrays that this client returned and Python has not freed.
  int64_t live_arrays() const { return *arrays_; }
  // How many restarts of servers were detected.
  uint64_t restarts() const { return restarts_; }

 private:
  size_t DimOf(size_t table) const;
  size_t SizeOf(size_t tensor) const;
  std::shared_ptr<Prefetch::Wanted> WantedOf(const std::vector<TableIds>& tables,
                                             const std::vector<TensorShape>& tensors) const;
  std::shared_ptr<ps_client::Pending> BeginPull(std::shared_ptr<Prefetch::Wanted> wanted,
                                                bool create);
  // Does not copy the gradients of tensors.
  std::shared_ptr<PushState> PushStateOf(job::LeaseId lease, const Shard& shard, uint64_t batch,
                                         const std::vector<TableGradient>& tables,
                                         const std::vector<TensorGradient>& tensors,
                                         const PulledVersions* versions, bool opens) const;
  std::shared_ptr<ps_client::Pending> BeginPush(std::shared_ptr<PushState> state);
  // Waits for an operation that uses the arrays in `used`. If a signal ends the wait, the arrays
  // are kept until the operation is done.
  template <typename Used>
  void Wait(const std::shared_ptr<ps_client::Pending>& pending, const Used& used);
  void Wait(const std::shared_ptr<ps_client::Pending>& pending) { Wait(pending, 0); }

  const SystemClock clock_{};
  const ArrayCount arrays_;
  const SameProcess process_;
  std::atomic<bool> stop_ = false;
  std::atomic<uint64_t> restarts_ = 0;
  ps_client::ClientOptions options_;
  wire::Placement placement_{1};
  std::unique_ptr<ps_client::ClientThread> thread_;
  std::vector<size_t> dims_;
  std::vector<size_t> sizes_;
  std::vector<std::pair<std::shared_ptr<ps_client::Pending>, std::shared_ptr<void>>> left_behind_;
};

}  // namespace edl::native
