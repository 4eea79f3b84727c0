#include "elasticdl/native/client.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "elasticdl/native/status.h"

namespace edl::native {
namespace {

namespace nb = nanobind;
using ps_client::ClientOptions;
using ps_client::Keys;
using ps_client::Pending;
using Ticket = ps_client::ParameterClient::Ticket;

// Between two checks for signals.
constexpr Duration kSlice = std::chrono::milliseconds(50);

// Waits for the operation. False: the handler of a signal has raised. REQUIRES: the GIL.
bool WaitUnlessSignalled(Pending& pending) {
  while (true) {
    {
      const nb::gil_scoped_release released;
      if (pending.WaitFor(kSlice)) return true;
    }
    if (PyErr_CheckSignals() != 0) return false;
  }
}

// Runs `act` on another thread. If the handler of a signal raises, sets `stop`.
template <typename T>
T DoInterruptibly(std::atomic<bool>& stop, const std::function<Result<T>()>& act) {
  std::optional<Result<T>> result;
  Pending pending;
  std::thread thread([&] {
    result = act();
    pending.Finish(Ok());
  });
  const bool is_over = WaitUnlessSignalled(pending);
  if (!is_over) stop = true;
  {
    const nb::gil_scoped_release released;
    thread.join();
  }
  if (!is_over) throw nb::python_error();
  return OrRaise(*std::move(result));
}

ClientOptions OptionsOf(const std::vector<Client::Server>& servers, std::string token,
                        std::string caller, const std::string& transport, double timeout_seconds,
                        bool follows_restarts) {
  using Transport = ClientOptions::Transport;
  // Longer timeouts, and infinity, mean no timeout: ParameterClient caps them at a century.
  constexpr double kLongestSeconds = 5e9;
  ClientOptions options{
      .token = std::move(token),
      .caller = std::move(caller),
      .transport = transport == "tcp"   ? Transport::kTcp
                   : transport == "shm" ? Transport::kSharedMemory
                                        : Transport::kAuto,
      .timeout = std::chrono::duration_cast<Duration>(
          std::chrono::duration<double>(std::min(timeout_seconds, kLongestSeconds))),
      .follows_restarts = follows_restarts};
  for (const auto& [host, port] : servers) options.servers.push_back({.host = host, .port = port});
  return options;
}

wire::ShardKey KeyOf(const Client::Shard& shard) {
  const auto& [ledger, dataset, generation, epoch, ordinal] = shard;
  return {.ledger = ledger,
          .dataset = dataset,
          .generation = generation,
          .epoch = epoch,
          .ordinal = ordinal};
}

template <typename... Args>
[[noreturn]] void RaiseValueError(fmt::format_string<Args...> format, Args&&... args) {
  throw nb::value_error(fmt::format(format, std::forward<Args>(args)...).c_str());
}

float* FloatsIn(const wire::Buffer& buffer) { return reinterpret_cast<float*>(buffer.data()); }

template <typename Value>
wire::Buffer CopyOf(std::span<const Value> values) {
  wire::Buffer copy(values.size_bytes());
  if (!values.empty()) std::memcpy(copy.data(), values.data(), values.size_bytes());
  return copy;
}

struct PushTable {
  PushTable(const wire::Placement& placement, size_t its_number)
      : number(its_number), keys(placement) {}
  size_t number;
  Keys keys;
  wire::Buffer sums;
  float learning_rate = 0;
};

}  // namespace

ShardTuple TupleOf(const wire::ShardKey& key) {
  return {key.ledger, key.dataset, key.generation, key.epoch, key.ordinal};
}

void SameProcess::Check() const {
  if (!IsForked()) return;
  throw std::runtime_error(
      "this ParameterClient was made before a fork: make another one in the child process");
}

PulledVersions PulledVersions::Oldest(const PulledVersions& other) const {
  ps_client::Versions oldest = versions_;
  for (size_t lane = 0; lane < std::min(oldest.size(), other.versions_.size()); ++lane) {
    oldest[lane] = std::min(oldest[lane], other.versions_[lane]);
  }
  return PulledVersions(std::move(oldest));
}

struct PushState {
  job::LeaseId lease;
  wire::ShardKey shard;
  uint64_t batch = 0;
  std::vector<PushTable> tables;
  std::vector<ps_client::TensorPush> tensors;
  std::vector<wire::Buffer> copies;  // of gradients of tensors, where they could change meanwhile
  std::optional<ps_client::Versions> versions;
  bool opens = false;
  Ticket open = 0;
  ps_client::PushResult result;

  std::tuple<int, uint64_t, bool> Told() const {
    return {static_cast<int>(result.outcome), result.watermark, result.refused};
  }

  Ticket Start(ps_client::ParameterClient& client) {
    // A lane handles requests in order, so the shard is open when the lane handles the push.
    if (opens) open = client.StartOpen(lease, shard);
    ps_client::PushSpec spec{.lease = lease,
                             .shard = shard,
                             .batch = batch,
                             .tensors = tensors,
                             .versions = versions.has_value() ? &*versions : nullptr};
    for (const PushTable& table : tables) {
      spec.tables.push_back({.table = table.number,
                             .keys = &table.keys,
                             .gradients = FloatsIn(table.sums),
                             .learning_rate = table.learning_rate});
    }
    return client.StartPush(spec);
  }

  Status Finish(ps_client::ParameterClient& client, Ticket ticket) {
    const Status opened = opens ? client.WaitOpen(open).status() : Ok();
    const auto pushed = client.WaitPush(ticket);
    EDL_RETURN_IF_ERROR(opened);
    EDL_RETURN_IF_ERROR(pushed.status());
    result = *pushed;
    return Ok();
  }
};

std::pair<nb::list, nb::list> Prefetch::Take() {
  process_.Check();
  if (!WaitUnlessSignalled(*pending_)) throw nb::python_error();
  OrRaise(pending_->status());
  if (taken_) RaiseValueError("take() was called twice");
  taken_ = true;
  std::pair<nb::list, nb::list> all;
  for (Table& table : wanted_->tables) {
    const size_t unique = table.keys.ids().size();
    all.first.append(
        nb::make_tuple(ArrayOfFloats(std::move(table.rows), {unique, table.dim}, arrays_),
                       ArrayOfInt32(std::move(table.places), table.shape, arrays_),
                       ArrayOfInt64(std::move(table.unique), {unique}, arrays_)));
  }
  for (Tensor& tensor : wanted_->tensors) {
    all.second.append(ArrayOfFloats(std::move(tensor.values), tensor.shape, arrays_));
  }
  return all;
}

std::tuple<int, uint64_t, bool> PendingPush::Result() {
  process_.Check();
  if (!WaitUnlessSignalled(*pending_)) throw nb::python_error();
  OrRaise(pending_->status());
  return state_->Told();
}

Client::Client(std::vector<Server> servers, std::string token, std::string caller,
               const std::string& transport, double timeout_seconds, bool follows_restarts)
    : arrays_(std::make_shared<std::atomic<int64_t>>(0)),
      options_(OptionsOf(servers, std::move(token), std::move(caller), transport, timeout_seconds,
                         follows_restarts)) {
  ClientOptions options = options_;
  options.stop = &stop_;
  options.restarts = &restarts_;
  auto client = DoInterruptibly<std::unique_ptr<ps_client::ParameterClient>>(
      stop_, [&] { return ps_client::ParameterClient::Connect(options, clock_); });
  placement_ = client->placement();
  thread_ = std::make_unique<ps_client::ClientThread>(std::move(client), stop_);
}

Client::~Client() { Close(); }

void Client::Close() {
  if (process_.IsForked()) {
    // The thread and the connections belong to the parent: nothing is closed or joined.
    (void)thread_.release();  // NOLINT: leaked on purpose
    return;
  }
  const nb::gil_scoped_release released;
  thread_->Stop();
}

template <typename Used>
void Client::Wait(const std::shared_ptr<Pending>& pending, const Used& used) {
  process_.Check();
  std::erase_if(left_behind_, [](const auto& left) { return left.first->WaitFor({}); });
  if (!WaitUnlessSignalled(*pending)) {
    left_behind_.emplace_back(pending, std::make_shared<Used>(used));
    throw nb::python_error();
  }
  OrRaise(pending->status());
}

size_t Client::DimOf(size_t table) const {
  if (table >= dims_.size()) RaiseValueError("there is no table {}", table);
  return dims_[table];
}

size_t Client::SizeOf(size_t tensor) const {
  if (tensor >= sizes_.size()) RaiseValueError("there is no tensor {}", tensor);
  return sizes_[tensor];
}

void Client::Declare(std::string text, std::vector<size_t> dims,
                     const std::vector<std::pair<std::string, size_t>>& tensors) {
  process_.Check();
  ps_client::Parameters parameters{.text = std::move(text), .table_dims = dims};
  std::vector<size_t> sizes;
  for (const auto& [name, size] : tensors) {
    parameters.tensors.push_back({.name = name, .size = size});
    sizes.push_back(size);
  }
  Wait(thread_->Call(
      [parameters](ps_client::ParameterClient& client) { return client.Declare(parameters); }));
  dims_ = std::move(dims);
  sizes_ = std::move(sizes);
}

size_t Client::Put(const std::vector<Value>& values) {
  process_.Check();
  std::vector<ps_client::TensorValues> tensors;
  for (const auto& [tensor, value] : values) {
    if (value.size() != SizeOf(tensor))
      RaiseValueError("tensor {} has {} values, expected {}", tensor, value.size(), SizeOf(tensor));
    tensors.push_back({.tensor = tensor, .values = value.data()});
  }
  const auto taken = std::make_shared<size_t>(0);  // of this call and of the thread
  Wait(thread_->Call([tensors, taken](ps_client::ParameterClient& client) -> Status {
    EDL_ASSIGN_OR_RETURN(*taken, client.Put(tensors));
    return Ok();
  }),
       values);
  return *taken;
}

std::shared_ptr<Prefetch::Wanted> Client::WantedOf(const std::vector<TableIds>& tables,
                                                   const std::vector<TensorShape>& tensors) const {
  auto wanted = std::make_shared<Prefetch::Wanted>();
  for (const auto& [table, ids] : tables) {
    if (ids.size() > Keys::kMostIds)
      RaiseValueError("{} ids are too many for one call; the limit is {}", ids.size(),
                      Keys::kMostIds);
    wanted->tables.emplace_back(placement_, table, DimOf(table)).shape = ShapeOf(ids);
  }
  for (const auto& [tensor, shape] : tensors) {
    size_t size = 1;
    for (const size_t length : shape) size *= length;
    if (size != SizeOf(tensor))
      RaiseValueError("tensor {} has {} values, expected {}", tensor, size, SizeOf(tensor));
    wanted->tensors.push_back(
        {.number = tensor, .shape = shape, .values = wire::Buffer(size * sizeof(float))});
  }
  return wanted;
}

std::shared_ptr<Pending> Client::BeginPull(std::shared_ptr<Prefetch::Wanted> wanted, bool create) {
  using Unknown = wire::Pull::Unknown;
  return thread_->Start(
      [wanted, create](ps_client::ParameterClient& client) {
        ps_client::PullSpec spec{.unknown = create ? Unknown::kMake : Unknown::kTell};
        for (Prefetch::Table& table : wanted->tables) {
          if (!table.ids.empty()) table.keys.Assign(table.ids);
          table.rows.Reshape(table.keys.ids().size() * table.dim * sizeof(float));
          spec.tables.push_back(
              {.table = table.number, .keys = &table.keys, .rows = FloatsIn(table.rows)});
        }
        for (const Prefetch::Tensor& tensor : wanted->tensors) {
          spec.tensors.push_back({.tensor = tensor.number, .values = FloatsIn(tensor.values)});
        }
        return client.StartPull(spec);
      },
      [wanted](ps_client::ParameterClient& client, Ticket ticket) {
        for (Prefetch::Table& table : wanted->tables) {
          if (table.ids.empty()) continue;
          table.places = CopyOf(table.keys.places());
          table.unique = CopyOf(table.keys.ids());
        }
        return client.WaitPull(ticket, &wanted->versions);
      });
}

std::pair<nb::list, PulledVersions> Client::Pull(const std::vector<TableIds>& tables, bool create) {
  process_.Check();
  const auto wanted = WantedOf(tables, {});
  {
    const nb::gil_scoped_release released;
    for (size_t i = 0; i < tables.size(); ++i) {
      wanted->tables[i].keys.Assign({tables[i].second.data(), tables[i].second.size()});
    }
  }
  Wait(BeginPull(wanted, create));
  std::vector<wire::Buffer> spread(tables.size());
  {
    const nb::gil_scoped_release released;
    for (size_t i = 0; i < tables.size(); ++i) {
      const Prefetch::Table& table = wanted->tables[i];
      spread[i].Reshape(table.keys.places().size() * table.dim * sizeof(float));
      table.keys.Spread(FloatsIn(table.rows), table.dim, FloatsIn(spread[i]));
    }
  }
  nb::list all;
  for (size_t i = 0; i < tables.size(); ++i) {
    std::vector<size_t> shape = wanted->tables[i].shape;
    shape.push_back(wanted->tables[i].dim);
    all.append(ArrayOfFloats(std::move(spread[i]), shape, arrays_));
  }
  return {std::move(all), PulledVersions(wanted->versions)};
}

std::unique_ptr<Prefetch> Client::StartPull(const std::vector<TableIds>& tables,
                                            const std::vector<TensorShape>& tensors, bool create) {
  process_.Check();
  auto wanted = WantedOf(tables, tensors);
  {
    const nb::gil_scoped_release released;
    // A copy, because the caller may change its array while the thread sorts the ids.
    for (size_t i = 0; i < tables.size(); ++i) {
      const Ids& ids = tables[i].second;
      wanted->tables[i].ids.assign(ids.data(), ids.data() + ids.size());
    }
  }
  auto pending = BeginPull(wanted, create);
  return std::make_unique<Prefetch>(std::move(wanted), std::move(pending), arrays_);
}

std::pair<nb::list, PulledVersions> Client::PullTensors(const std::vector<TensorShape>& tensors) {
  process_.Check();
  auto wanted = WantedOf({}, tensors);
  auto pending = BeginPull(wanted, true);
  Prefetch prefetch(std::move(wanted), std::move(pending), arrays_);
  nb::list taken = prefetch.Take().second;
  return {std::move(taken), prefetch.versions()};
}

std::pair<uint64_t, job::PsEpoch> Client::Open(job::LeaseId lease, const Shard& shard,
                                               job::PsEpoch at_least_epoch) {
  process_.Check();
  // Shared by this call and the thread.
  const auto opened = std::make_shared<ps_client::ParameterClient::Opened>();
  Wait(thread_->Start(
      [lease, key = KeyOf(shard), at_least_epoch](ps_client::ParameterClient& client) {
        return client.StartOpen(lease, key, at_least_epoch);
      },
      [opened](ps_client::ParameterClient& client, Ticket ticket) -> Status {
        EDL_ASSIGN_OR_RETURN(*opened, client.WaitOpen(ticket));
        return Ok();
      }));
  return {opened->watermark, opened->ps_epoch};
}

std::shared_ptr<PushState> Client::PushStateOf(job::LeaseId lease, const Shard& shard,
                                               uint64_t batch,
                                               const std::vector<TableGradient>& tables,
                                               const std::vector<TensorGradient>& tensors,
                                               const PulledVersions* versions, bool opens) const {
  process_.Check();
  auto state =
      std::make_shared<PushState>(PushState{.lease = lease, .shard = KeyOf(shard), .batch = batch});
  if (versions != nullptr) state->versions = versions->versions();
  state->opens = opens;
  std::vector<size_t> dims;
  for (const auto& [table, ids, gradients, rate] : tables) {
    dims.push_back(DimOf(table));
    if (ids.size() > Keys::kMostIds)
      RaiseValueError("{} ids are too many for one call; the limit is {}", ids.size(),
                      Keys::kMostIds);
    if (gradients.size() != ids.size() * dims.back()) {
      RaiseValueError("table {}: {} gradient values do not match {} ids of dim {}", table,
                      gradients.size(), ids.size(), dims.back());
    }
    state->tables.emplace_back(placement_, table).learning_rate = static_cast<float>(rate);
  }
  for (const auto& [tensor, gradient, rate] : tensors) {
    if (gradient.size() != SizeOf(tensor))
      RaiseValueError("tensor {} has {} values, expected {}", tensor, gradient.size(),
                      SizeOf(tensor));
    state->tensors.push_back({.tensor = tensor,
                              .gradients = gradient.data(),
                              .learning_rate = static_cast<float>(rate)});
  }
  {
    const nb::gil_scoped_release released;
    for (size_t i = 0; i < tables.size(); ++i) {
      PushTable& table = state->tables[i];
      const Ids& ids = std::get<Ids>(tables[i]);
      table.keys.Assign({ids.data(), ids.size()});
      table.sums.Reshape(table.keys.ids().size() * dims[i] * sizeof(float));
      table.keys.Sum(std::get<Floats>(tables[i]).data(), dims[i], FloatsIn(table.sums));
    }
  }
  return state;
}

std::shared_ptr<Pending> Client::BeginPush(std::shared_ptr<PushState> state) {
  return thread_->Start(
      [state](ps_client::ParameterClient& client) { return state->Start(client); },
      [state](ps_client::ParameterClient& client, Ticket ticket) {
        return state->Finish(client, ticket);
      });
}

std::tuple<int, uint64_t, bool> Client::Push(job::LeaseId lease, const Shard& shard, uint64_t batch,
                                             const std::vector<TableGradient>& tables,
                                             const std::vector<TensorGradient>& tensors,
                                             const PulledVersions* versions, bool opens) {
  const auto state = PushStateOf(lease, shard, batch, tables, tensors, versions, opens);
  Wait(BeginPush(state), tensors);
  return state->Told();
}

std::unique_ptr<PendingPush> Client::StartPush(job::LeaseId lease, const Shard& shard,
                                               uint64_t batch,
                                               const std::vector<TableGradient>& tables,
                                               const std::vector<TensorGradient>& tensors,
                                               const PulledVersions* versions, bool opens) {
  auto state = PushStateOf(lease, shard, batch, tables, tensors, versions, opens);
  {
    const nb::gil_scoped_release released;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const Floats& gradient = std::get<Floats>(tensors[i]);
      state->copies.push_back(CopyOf(std::span(gradient.data(), gradient.size())));
      state->tensors[i].gradients = FloatsIn(state->copies.back());
    }
  }
  auto pending = BeginPush(state);
  return std::make_unique<PendingPush>(std::move(state), std::move(pending));
}

void Client::Flush() {
  process_.Check();
  std::atomic<bool> stop = false;
  ClientOptions options = options_;
  options.stop = &stop;
  DoInterruptibly<bool>(stop, [&]() -> Result<bool> {
    EDL_ASSIGN_OR_RETURN(const auto client, ps_client::ParameterClient::Connect(options, clock_));
    EDL_RETURN_IF_ERROR(client->Flush());
    return true;
  });
}

std::tuple<uint64_t, double, double> Client::Save(const std::string& folder) {
  process_.Check();
  // On its own connections: pulls and pushes of other threads continue.
  std::atomic<bool> stop = false;
  ClientOptions options = options_;
  options.stop = &stop;
  using SaveResult = ps_client::ParameterClient::SaveResult;
  const auto saved = DoInterruptibly<SaveResult>(stop, [&]() -> Result<SaveResult> {
    EDL_ASSIGN_OR_RETURN(const auto client, ps_client::ParameterClient::Connect(options, clock_));
    return client->Save(folder);
  });
  return {saved.bytes, saved.seconds, saved.longest_pause_seconds};
}

uint64_t Client::Restore(const std::string& folder) {
  process_.Check();
  std::atomic<bool> stop = false;
  ClientOptions options = options_;
  options.stop = &stop;
  using Restored = std::pair<uint64_t, std::vector<job::PsIncarnation>>;
  const auto restored = DoInterruptibly<Restored>(stop, [&]() -> Result<Restored> {
    EDL_ASSIGN_OR_RETURN(const auto client, ps_client::ParameterClient::Connect(options, clock_));
    EDL_ASSIGN_OR_RETURN(const uint64_t rows, client->Restore(folder));
    return Restored(rows, client->incarnations());
  });
  Wait(thread_->Call([incarnations = restored.second](ps_client::ParameterClient& client) {
    client.Expect(incarnations);
    return Ok();
  }));
  return restored.first;
}

}  // namespace edl::native
