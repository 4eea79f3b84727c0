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
#include "ps_client/client.h"
#include "ps_client/client_thread.h"

namespace edl::native {

// Throws RuntimeError in a process that was forked after the object was made: the thread that
// serves it exists only in the parent, and a wait would have no end. REQUIRES: the GIL.
class SameProcess {
 public:
  SameProcess() : process_(getpid()) {}
  bool IsForked() const { return getpid() != process_; }
  void Check() const;

 private:
  const pid_t process_;
};

// How old parameters are that were pulled: the version of each lane. Immutable.
class PulledVersions {
 public:
  explicit PulledVersions(ps_client::Versions versions) : versions_(std::move(versions)) {}

  // The older version of each lane, for parameters that came by two pulls.
  PulledVersions Oldest(const PulledVersions& other) const;
  const ps_client::Versions& versions() const { return versions_; }

 private:
  const ps_client::Versions versions_;
};

// What a batch needs, on its way or here. Thread-safe, with the GIL.
class Prefetch {
 public:
  struct Table {
    Table(const wire::Placement& placement, size_t its_number, size_t its_dim)
        : number(its_number), dim(its_dim), keys(placement) {}
    size_t number;
    size_t dim;
    std::vector<size_t> shape;  // of the ids
    std::vector<int64_t> ids;   // until they are in order
    ps_client::Keys keys;
    // One for each of keys.ids(), for each id that was given, and the ids.
    wire::Buffer rows;
    wire::Buffer places;
    wire::Buffer unique;
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

  // `wanted` is owned by this and by the thread that pulls it.
  Prefetch(std::shared_ptr<Wanted> wanted, std::shared_ptr<ps_client::Pending> pending,
           ArrayCount arrays)
      : wanted_(std::move(wanted)), pending_(std::move(pending)), arrays_(std::move(arrays)) {}

  bool IsDone() {
    process_.Check();
    return pending_->WaitFor(Duration::zero());
  }
  // Waits. For each table (rows, places of the given ids among them, their ids), and the tensors;
  // once.
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

// What a push owns while it is under way.
struct PushState;

// A push that nobody waits for yet. Thread-safe, with the GIL.
class PendingPush {
 public:
  // The state is owned by this and by the thread that pushes.
  PendingPush(std::shared_ptr<PushState> state, std::shared_ptr<ps_client::Pending> pending)
      : state_(std::move(state)), pending_(std::move(pending)) {}

  bool IsDone() {
    process_.Check();
    return pending_->WaitFor(Duration::zero());
  }
  // Waits. As Client::Push tells it.
  std::tuple<int, uint64_t, bool> Result();

 private:
  const std::shared_ptr<PushState> state_;
  const std::shared_ptr<ps_client::Pending> pending_;
  const SameProcess process_;
};

// ps_client::Client for Python. What comes in was checked by elasticdl/parameter_client.py, which
// has better words for it; what would touch foreign memory is checked here again.
//
// Thread-safe, with the GIL, which no wait and no loop over a batch holds. A signal whose handler
// raises ends a wait; what was asked for goes on.
class Client {
 public:
  using Server = std::pair<std::string, uint16_t>;
  // Connects. "auto", "tcp" or "shm".
  Client(std::vector<Server> servers, std::string token, std::string caller,
         const std::string& transport, double timeout_seconds, bool follows_restarts);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // `dims` of the tables, name and size of the tensors.
  void Declare(std::string text, std::vector<size_t> dims,
               const std::vector<std::pair<std::string, size_t>>& tensors);
  // Tensors by number. How many of their blocks had no value.
  using Value = std::pair<size_t, Floats>;
  size_t Put(const std::vector<Value>& values);

  // Tables by number, each with ids of any shape; `create` makes rows of new ids.
  using TableIds = std::pair<size_t, Ids>;
  // Tensors by number, with the shape in which they come.
  using TensorShape = std::pair<size_t, std::vector<size_t>>;
  // The rows of each table, and how old they are.
  std::pair<nanobind::list, PulledVersions> Pull(const std::vector<TableIds>& tables, bool create);
  std::unique_ptr<Prefetch> StartPull(const std::vector<TableIds>& tables,
                                      const std::vector<TensorShape>& tensors, bool create);
  std::pair<nanobind::list, PulledVersions> PullTensors(const std::vector<TensorShape>& tensors);

  // Ledger, dataset, generation, epoch, ordinal.
  using Shard = std::tuple<uint64_t, uint64_t, uint32_t, uint32_t, uint64_t>;
  // The first batch that a bucket lacks, and the epoch of the servers.
  std::pair<uint64_t, uint64_t> Open(uint64_t lease, const Shard& shard, uint64_t at_least_epoch);
  // Table, ids, a gradient for each, learning rate.
  using TableGradient = std::tuple<size_t, Ids, Floats, double>;
  using TensorGradient = std::tuple<size_t, Floats, double>;
  // Outcome, mark, whether it was refused for what is no number. `versions`: of the parameters that
  // the batch was computed with; null: of the last pull. `opens`: opens the shard right before.
  std::tuple<int, uint64_t, bool> Push(uint64_t lease, const Shard& shard, uint64_t batch,
                                       const std::vector<TableGradient>& tables,
                                       const std::vector<TensorGradient>& tensors,
                                       const PulledVersions* versions, bool opens);
  // Takes copies of the gradients.
  std::unique_ptr<PendingPush> StartPush(uint64_t lease, const Shard& shard, uint64_t batch,
                                         const std::vector<TableGradient>& tables,
                                         const std::vector<TensorGradient>& tensors,
                                         const PulledVersions* versions, bool opens);

  void Flush();
  // Bytes, seconds, the longest pause of a lane in seconds.
  std::tuple<uint64_t, double, double> Save(const std::string& folder);
  uint64_t Restore(const std::string& folder);
  void Close();

  int64_t live_arrays() const { return *arrays_; }
  // How many lanes have found their server to be started anew, so far.
  uint64_t restarts() const { return restarts_; }

 private:
  size_t DimOf(size_t table) const;
  size_t SizeOf(size_t tensor) const;
  std::shared_ptr<Prefetch::Wanted> WantedOf(const std::vector<TableIds>& tables,
                                             const std::vector<TensorShape>& tensors) const;
  std::shared_ptr<ps_client::Pending> BeginPull(std::shared_ptr<Prefetch::Wanted> wanted,
                                                bool create);
  // Tensors stay where they lie.
  std::shared_ptr<PushState> PushStateOf(uint64_t lease, const Shard& shard, uint64_t batch,
                                         const std::vector<TableGradient>& tables,
                                         const std::vector<TensorGradient>& tensors,
                                         const PulledVersions* versions, bool opens) const;
  std::shared_ptr<ps_client::Pending> BeginPush(std::shared_ptr<PushState> state);
  // Waits for what uses arrays of `used`, which are kept if a signal ends the wait before.
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
