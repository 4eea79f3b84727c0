#include "ps_client/client.h"

#include <algorithm>
#include <array>
#include <span>
#include <system_error>
#include <utility>

#include <poll.h>

#include "base/check.h"
#include "base/log.h"
#include "job/manifest.h"

namespace edl::ps_client {
namespace {

using wire::MessageType;
using Outcome = PushResult::Outcome;

// Between two attempts to reach a server.
constexpr Duration kPause = std::chrono::milliseconds(100);
// For one of them.
constexpr Duration kAttempt = std::chrono::seconds(1);

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

// What is worse for one who pushes: that another has the shard, that it must be opened again, or
// that an earlier batch is missing.
int Badness(Outcome outcome) {
  switch (outcome) {
    case Outcome::kApplied:
    case Outcome::kAlready:
      return 0;
    case Outcome::kStale:
      return 1;
    case Outcome::kAhead:
      return 2;
    case Outcome::kNotOpen:
      return 3;
    case Outcome::kFenced:
      return 4;
  }
  return 4;
}

bool IsLoss(const Status& status) {
  return status.code() == Code::kUnavailable || status.code() == Code::kDataLoss ||
         status.code() == Code::kDeadlineExceeded;
}

// NaN and infinity are what they are also when multiplied by 0; other numbers are 0 then.
bool AreAllNumbers(std::span<const float> values) {
  constexpr size_t kLanes = 16;
  std::array<float, kLanes> sums{};
  size_t at = 0;
  for (; at + kLanes <= values.size(); at += kLanes) {
    for (size_t i = 0; i < kLanes; ++i) sums[i] += values[at + i] * 0.0F;
  }
  float sum = 0;
  for (; at < values.size(); ++at) sum += values[at] * 0.0F;
  for (const float lane : sums) sum += lane;
  return sum == 0;
}

bool IsStopped(const ClientOptions& options) {
  return options.stop != nullptr && options.stop->load(std::memory_order_relaxed);
}

int Milliseconds(Duration duration) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

// How long to wait for what may never come: who may be stopped looks now and then.
int LongestWait(const ClientOptions& options) {
  return options.stop != nullptr ? Milliseconds(kPause) : -1;
}

// Asks a server who it is, once.
Result<wire::Welcome> AskOnce(const ClientOptions& options, const ServerAddress& server,
                              bool shared_memory, const Clock& clock, Duration patience) {
  return AskWho({.host = server.host,
                 .port = server.port,
                 .token = options.token,
                 .caller = options.caller,
                 .shared_memory = shared_memory,
                 .limits = options.limits},
                {.dial = std::min<Duration>(kAttempt, options.patience),
                 .patience = patience,
                 .stop = options.stop},
                clock);
}

// For as long as patience lasts.
Result<wire::Welcome> AwaitWho(const ClientOptions& options, const ServerAddress& server,
                               const Clock& clock) {
  const Time deadline = clock.Now() + options.patience;
  while (true) {
    Result<wire::Welcome> welcome = AskOnce(options, server, false, clock, deadline - clock.Now());
    if (welcome.ok()) return welcome;
    if (!IsLoss(welcome.status()) || clock.Now() > deadline) {
      return welcome.status().Within(fmt::format("server {}:{}", server.host, server.port));
    }
    if (IsStopped(options)) return Cancelled("stopped while connecting");
    poll(nullptr, 0, Milliseconds(kPause));
  }
}

// Whether the server that gave the welcome can be reached through shared memory too. The
// incarnation says that it is the same: another machine's server may have the same port.
bool HasSharedMemory(const ClientOptions& options, const ServerAddress& server,
                     const wire::Welcome& welcome, const Clock& clock) {
  const Result<wire::Welcome> other = AskOnce(options, server, true, clock, kAttempt);
  return other.ok() && other->incarnation == welcome.incarnation;
}

}  // namespace

Result<std::unique_ptr<Client>> Client::Connect(ClientOptions options, const Clock& clock) {
  using Transport = ClientOptions::Transport;
  if (options.servers.empty()) return InvalidArgument("no parameter server is named");
  size_t lanes_each = 0;
  std::vector<bool> shared;
  for (size_t index = 0; index < options.servers.size(); ++index) {
    const ServerAddress& server = options.servers[index];
    EDL_ASSIGN_OR_RETURN(const wire::Welcome welcome, AwaitWho(options, server, clock));
    if (index == 0) lanes_each = welcome.lanes;
    if (welcome.servers != options.servers.size() || welcome.index != index ||
        welcome.lanes != lanes_each || lanes_each == 0) {
      return FailedPrecondition(
          "{}:{} is server {} of {} with {} lanes, and not server {} of {} with {}", server.host,
          server.port, welcome.index, welcome.servers, welcome.lanes, index, options.servers.size(),
          lanes_each);
    }
    shared.push_back(options.transport == Transport::kSharedMemory ||
                     (options.transport == Transport::kAuto &&
                      HasSharedMemory(options, server, welcome, clock)));
  }
  return std::unique_ptr<Client>(new Client(std::move(options), clock, lanes_each, shared));
}

Client::Client(ClientOptions options, const Clock& clock, size_t lanes_each,
               const std::vector<bool>& shared)
    : options_(std::move(options)),
      clock_(clock),
      lanes_each_(lanes_each),
      placement_(lanes_each * options_.servers.size()),
      versions_(placement_.lanes(), wire::Push::kNoVersion),
      incarnations_(options_.servers.size()) {
  for (size_t place = 0; place < placement_.lanes(); ++place) {
    const ServerAddress& server = options_.servers[place / lanes_each];
    lanes_.push_back(std::make_unique<Lane>(
        Lane{.link = Link({.host = server.host,
                           .port = server.port,
                           .token = options_.token,
                           .caller = options_.caller,
                           .lane = static_cast<uint32_t>(place % lanes_each),
                           .place = static_cast<uint32_t>(place),
                           .lanes = static_cast<uint32_t>(placement_.lanes()),
                           .shared_memory = shared[place / lanes_each],
                           .limits = options_.limits}),
             .lost_since = std::nullopt,
             .next_attempt = {}}));
  }
}

Client::Operation Client::MakeOperation(MessageType type) const {
  Operation operation;
  operation.requests.resize(placement_.lanes());
  for (Request& request : operation.requests) request.type = type;
  return operation;
}

Client::Ticket Client::Start(std::unique_ptr<Operation> operation) {
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    lanes_[lane]->link.Send(operation->requests[lane]);
  }
  operations_[++last_ticket_] = std::move(operation);
  Move();
  return last_ticket_;
}

Result<std::unique_ptr<Client::Operation>> Client::Wait(Ticket ticket) {
  while (!IsDone(ticket)) {
    if (IsStopped(options_)) return Cancelled("stopped while waiting for an answer");
    Move();
    if (!IsDone(ticket)) WaitToMove(-1);
  }
  const auto found = operations_.find(ticket);
  std::unique_ptr<Operation> operation = std::move(found->second);
  operations_.erase(found);
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    const Request& request = operation->requests[lane];
    if (!request.status.ok()) return request.status;
    incarnations_[lane / lanes_each_] = request.incarnation;
  }
  return operation;
}

bool Client::IsDone(Ticket ticket) const {
  const auto found = operations_.find(ticket);
  CHECK(found != operations_.end(), "nobody started operation {}, or it was waited for", ticket);
  return std::ranges::all_of(found->second->requests,
                             [](const Request& request) { return request.done; });
}

void Client::Move() {
  for (const auto& lane : lanes_) {
    // Who stopped us may have freed where answers belong.
    if (IsStopped(options_)) return;
    if (!lane->link.idle() || lane->link.connected()) Pump(*lane);
  }
}

void Client::Pump(Lane& lane) {
  Status status;
  if (!lane.link.connected()) {
    if (clock_.Now() < lane.next_attempt) return;
    status = lane.link.Connect(kAttempt);
    lane.next_attempt = clock_.Now() + kPause;
  }
  if (status.ok()) status = lane.link.Pump();
  if (status.ok()) {
    lane.lost_since.reset();
    return;
  }
  const LinkOptions& to = lane.link.options();
  if (!lane.lost_since.has_value()) {
    lane.lost_since = clock_.Now();
    // What else is wrong is told to who asked.
    if (IsLoss(status)) {
      LOG_WARNING("lost lane {} of server {}:{}: {}", to.lane, to.host, to.port, status.message());
    }
  }
  if (IsLoss(status) && clock_.Now() - *lane.lost_since < options_.patience) return;
  lane.link.GiveUp(
      std::move(status).Within(fmt::format("lane {} of server {}:{}", to.lane, to.host, to.port)));
}

void Client::WaitToMove(int wake) {
  std::vector<pollfd> waiting;
  std::vector<Link*> links;
  int timeout = wake >= 0 ? -1 : LongestWait(options_);
  for (const auto& lane : lanes_) {
    Link& link = lane->link;
    if (link.idle()) continue;
    if (link.connected()) {
      waiting.push_back({.fd = link.fd(), .events = link.events(), .revents = 0});
      links.push_back(&link);
    } else {
      timeout = Milliseconds(kPause);  // until it is dialled again
    }
  }
  waiting.push_back({.fd = wake, .events = POLLIN, .revents = 0});  // poll skips -1
  poll(waiting.data(), waiting.size(), timeout);
  for (size_t i = 0; i < links.size(); ++i) {
    if (waiting[i].revents != 0) links[i]->Woken();
  }
}

void Client::AddBlocks(const Parameters::Tensor& tensor, size_t lane, const float* values,
                       Tensors& tensors) const {
  for (size_t block = 0; block < wire::BlocksOf(tensor.size); ++block) {
    if (placement_.LaneOf(wire::BucketOfBlock(tensor.name, block)) != lane) continue;
    tensors.Continue(values + block * wire::kBlockValues,
                     wire::ValuesOfBlock(tensor.size, block) * sizeof(float));
  }
  tensors.End();
}

Status Client::Declare(Parameters parameters) {
  for (const auto& lane : lanes_) lane->link.Declare(parameters.text);
  parameters_ = std::move(parameters);
  // Answered like any other request; an empty one comes back once the declaration was taken.
  auto operation = std::make_unique<Operation>(MakeOperation(MessageType::kPull));
  for (Request& request : operation->requests) request.meta = wire::Encode(wire::Pull{});
  return Wait(Start(std::move(operation))).status();
}

Result<size_t> Client::Put(const std::vector<TensorPush>& tensors) {
  auto operation = std::make_unique<Operation>(MakeOperation(MessageType::kPut));
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    Request& request = operation->requests[lane];
    wire::Put put;
    for (const TensorPush& tensor : tensors) {
      put.tensors.push_back(static_cast<uint32_t>(tensor.tensor));
      AddBlocks(parameters_.tensors[tensor.tensor], lane, tensor.gradients, request.tensors);
    }
    request.meta = wire::Encode(put);
  }
  EDL_ASSIGN_OR_RETURN(operation, Wait(Start(std::move(operation))));
  size_t taken = 0;
  for (const Request& request : operation->requests) {
    wire::PutAnswer answer;
    EDL_RETURN_IF_ERROR(wire::Decode(Bytes(request.answer), answer));
    taken += answer.taken;
  }
  return taken;
}

Client::Ticket Client::StartPull(const PullSpec& spec) {
  auto operation = std::make_unique<Operation>(MakeOperation(MessageType::kPull));
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    Request& request = operation->requests[lane];
    wire::Pull pull{.unknown = spec.unknown};
    for (const TablePull& table : spec.tables) {
      const size_t begin = table.keys->BeginOf(lane);
      const size_t count = table.keys->SizeOf(lane);
      const size_t dim = parameters_.table_dims[table.table];
      pull.tables.push_back(
          {.table = static_cast<uint32_t>(table.table), .ids = static_cast<uint32_t>(count)});
      request.tensors.Add(table.keys->ids().data() + begin, count * sizeof(int64_t));
      request.rooms.Add(table.rows + begin * dim, count * dim * sizeof(float));
    }
    for (const TensorPull& tensor : spec.tensors) {
      pull.tensors.push_back(static_cast<uint32_t>(tensor.tensor));
      AddBlocks(parameters_.tensors[tensor.tensor], lane, tensor.values, request.rooms);
    }
    request.meta = wire::Encode(pull);
  }
  return Start(std::move(operation));
}

Status Client::WaitPull(Ticket ticket) {
  EDL_ASSIGN_OR_RETURN(const auto operation, Wait(ticket));
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    wire::PullAnswer answer;
    EDL_RETURN_IF_ERROR(wire::Decode(Bytes(operation->requests[lane].answer), answer));
    versions_[lane] = answer.version;
  }
  return Ok();
}

Result<Client::Opened> Client::Open(uint64_t lease, const wire::ShardKey& shard) {
  auto operation = std::make_unique<Operation>(MakeOperation(MessageType::kOpen));
  for (Request& request : operation->requests) {
    request.meta = wire::Encode(wire::Open{.lease = lease, .shard = shard});
  }
  EDL_ASSIGN_OR_RETURN(operation, Wait(Start(std::move(operation))));
  Opened lowest{.mark = UINT64_MAX, .ps_epoch = UINT64_MAX};
  for (const Request& request : operation->requests) {
    wire::OpenAnswer answer;
    EDL_RETURN_IF_ERROR(wire::Decode(Bytes(request.answer), answer));
    lowest.mark = std::min(lowest.mark, answer.mark);
    lowest.ps_epoch = std::min(lowest.ps_epoch, answer.ps_epoch);
  }
  return lowest;
}

bool Client::AreNumbers(const PushSpec& spec) const {
  const auto is_sound = [&](const float* values, size_t count) {
    return AreAllNumbers({values, count});
  };
  return std::ranges::all_of(spec.tables,
                             [&](const TablePush& table) {
                               return is_sound(
                                   table.gradients,
                                   table.keys->ids().size() * parameters_.table_dims[table.table]);
                             }) &&
         std::ranges::all_of(spec.tensors, [&](const TensorPush& tensor) {
           return is_sound(tensor.gradients, parameters_.tensors[tensor.tensor].size);
         });
}

Client::Ticket Client::StartPush(const PushSpec& spec) {
  auto operation = std::make_unique<Operation>(MakeOperation(MessageType::kPush));
  operation->refused = !AreNumbers(spec);
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    Request& request = operation->requests[lane];
    wire::Push push{.lease = spec.lease,
                    .shard = spec.shard,
                    .batch = spec.batch,
                    .refused = operation->refused,
                    .version = versions_[lane]};
    if (!operation->refused) {
      for (const TablePush& table : spec.tables) {
        const size_t begin = table.keys->BeginOf(lane);
        const size_t count = table.keys->SizeOf(lane);
        const size_t dim = parameters_.table_dims[table.table];
        push.tables.push_back({.table = static_cast<uint32_t>(table.table),
                               .ids = static_cast<uint32_t>(count),
                               .learning_rate = table.learning_rate});
        request.tensors.Add(table.keys->ids().data() + begin, count * sizeof(int64_t));
        request.tensors.Add(table.gradients + begin * dim, count * dim * sizeof(float));
      }
      for (const TensorPush& tensor : spec.tensors) {
        push.tensors.push_back({.tensor = static_cast<uint32_t>(tensor.tensor),
                                .learning_rate = tensor.learning_rate});
        AddBlocks(parameters_.tensors[tensor.tensor], lane, tensor.gradients, request.tensors);
      }
    }
    request.meta = wire::Encode(push);
  }
  return Start(std::move(operation));
}

Result<PushResult> Client::WaitPush(Ticket ticket) {
  EDL_ASSIGN_OR_RETURN(const auto operation, Wait(ticket));
  PushResult result{.mark = UINT64_MAX, .refused = operation->refused};
  for (const Request& request : operation->requests) {
    wire::PushAnswer answer;
    EDL_RETURN_IF_ERROR(wire::Decode(Bytes(request.answer), answer));
    const bool is_worse = Badness(answer.outcome) > Badness(result.outcome);
    if (is_worse) result.outcome = answer.outcome;
    result.mark = std::min(result.mark, answer.mark);
  }
  return result;
}

Result<std::vector<LaneAnswer>> Client::AskAll(MessageType type,
                                               const std::vector<std::string>& metas) {
  std::vector<Question> questions;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    LinkOptions to = lanes_[i]->link.options();
    to.shared_memory = false;
    questions.push_back({.to = std::move(to), .meta = metas[i]});
  }
  return Ask(type, questions, {.dial = kAttempt, .patience = {}, .stop = options_.stop}, clock_);
}

Status Client::Flush() {
  return AskAll(MessageType::kFlush, std::vector<std::string>(lanes_.size())).status();
}

Result<Client::SaveResult> Client::Save(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Unavailable("making {}: {}", folder.string(), error.message());
  EDL_ASSIGN_OR_RETURN(const bool is_checkpoint, job::HasManifest(folder));
  if (is_checkpoint) {
    return AlreadyExists("{} holds a checkpoint already", folder.string());
  }
  job::Manifest manifest;
  std::vector<std::string> metas;
  for (size_t place = 0; place < lanes_.size(); ++place) {
    manifest.parts.push_back({.file = fmt::format("part-{:04}-of-{:04}", place, lanes_.size()),
                              .first_bucket = placement_.FirstOf(place),
                              .end_bucket = placement_.EndOf(place)});
    metas.push_back(wire::Encode(
        wire::Save{.path = (std::filesystem::absolute(folder) / manifest.parts.back().file)}));
  }
  EDL_ASSIGN_OR_RETURN(const auto answers, AskAll(MessageType::kSave, metas));
  SaveResult result;
  for (size_t place = 0; place < lanes_.size(); ++place) {
    wire::SaveAnswer answer;
    EDL_RETURN_IF_ERROR(wire::Decode(Bytes(answers[place].meta), answer));
    manifest.parts[place].bytes = answer.bytes;
    result.bytes += answer.bytes;
    result.seconds = std::max(result.seconds, answer.seconds);
    result.longest_pause_seconds =
        std::max(result.longest_pause_seconds, answer.longest_pause_seconds);
  }
  EDL_RETURN_IF_ERROR(job::WriteManifest(folder, manifest));
  return result;
}

Result<uint64_t> Client::Restore(const std::filesystem::path& folder) {
  EDL_ASSIGN_OR_RETURN(const job::Manifest manifest, job::ReadManifest(folder));
  std::vector<std::string> metas;
  for (size_t place = 0; place < lanes_.size(); ++place) {
    metas.push_back(wire::Encode(wire::Restore{
        .paths = manifest.PathsFor(folder, placement_.FirstOf(place), placement_.EndOf(place))}));
  }
  EDL_ASSIGN_OR_RETURN(const auto answers, AskAll(MessageType::kRestore, metas));
  uint64_t rows = 0;
  for (const LaneAnswer& lane : answers) {
    wire::RestoreAnswer answer;
    EDL_RETURN_IF_ERROR(wire::Decode(Bytes(lane.meta), answer));
    rows += answer.rows;
  }
  return rows;
}

}  // namespace edl::ps_client
