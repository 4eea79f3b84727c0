#include "ps_client/parameter_client.h"

#include <algorithm>
#include <array>
#include <span>
#include <system_error>
#include <utility>

#include <poll.h>

#include "base/backoff.h"
#include "base/check.h"
#include "base/log.h"
#include "base/retry.h"
#include "base/text.h"
#include "checkpoint/manifest.h"
#include "checkpoint/new_checkpoint.h"

namespace edl::ps_client {
namespace {

using wire::MessageType;
using Outcome = wire::PushOutcome;

// Between two attempts to connect to a server, until all servers have answered once.
constexpr Duration kPause = std::chrono::milliseconds(100);
// For one attempt.
constexpr Duration kAttempt = std::chrono::seconds(1);
// Before the client reconnects to a lane with an old epoch.
constexpr BackoffLimits kReopen{.first = std::chrono::milliseconds(100),
                                .longest = std::chrono::milliseconds(1600)};
// Practically infinite, but a sum with it does not overflow.
constexpr Duration kLongestTimeout = std::chrono::hours(24 * 365 * 100);

// Orders outcomes by what the pushing client has to do: nothing, compute the batch again, push an
// earlier batch, open the shard again, or stop because another process has the shard.
int Severity(Outcome outcome) {
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

// A product with 0 is 0, unless the other factor is NaN or infinite.
bool AreAllFinite(std::span<const float> values) {
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

// The lane at that place in the order of all lanes.
job::LaneInJob LaneAt(size_t place) { return job::LaneInJob(static_cast<uint32_t>(place)); }

// Requests the Welcome of a server until the server answers or the deadline passes.
Result<wire::Welcome> AwaitWho(const ClientOptions& options, const ServerAddress& server,
                               Time deadline, const Clock& clock) {
  while (true) {
    Result<wire::Welcome> welcome =
        AskWho({.host = server.host,
                .port = server.port,
                .token = options.token,
                .caller = options.caller,
                .shared_memory = options.transport == Transport::kSharedMemory,
                .limits = options.limits},
               {.dial = std::min<Duration>(kAttempt, options.timeout),
                .timeout = std::min<Duration>(deadline - clock.Now(), options.silence),
                .stop = options.stop},
               clock);
    if (welcome.ok()) return welcome;
    if (!IsConnectionLoss(welcome.status()) || clock.Now() > deadline) {
      return welcome.status().Within(fmt::format("server {}:{}", server.host, server.port));
    }
    if (IsStopped(options)) return Cancelled("stopped while connecting to the parameter servers");
    poll(nullptr, 0, Milliseconds(kPause));
  }
}

}  // namespace

Result<std::unique_ptr<ParameterClient>> ParameterClient::Connect(ClientOptions options,
                                                                  const Clock& clock) {
  if (options.servers.empty())
    return InvalidArgument("no parameter servers are given: at least one host:port is needed");
  options.timeout = std::min<Duration>(options.timeout, kLongestTimeout);
  const Time deadline = clock.Now() + options.timeout;
  size_t lanes_each = 0;
  std::vector<job::PsIncarnation> incarnations;
  for (size_t index = 0; index < options.servers.size(); ++index) {
    const ServerAddress& server = options.servers[index];
    EDL_ASSIGN_OR_RETURN(const wire::Welcome welcome, AwaitWho(options, server, deadline, clock));
    if (index == 0) lanes_each = welcome.lanes;
    if (welcome.servers != options.servers.size() || welcome.index != index ||
        welcome.lanes != lanes_each || lanes_each == 0) {
      return FailedPrecondition(
          "{}:{} is server {} of {} with {} lanes, expected server {} of {} with {}; start all "
          "servers with the same --servers and --lanes, and list them in the order of --index",
          server.host, server.port, welcome.index, welcome.servers, welcome.lanes, index,
          options.servers.size(), lanes_each);
    }
    incarnations.push_back(welcome.incarnation);
  }
  EDL_ASSIGN_OR_RETURN(ReadySet ready, ReadySet::Make());
  return std::unique_ptr<ParameterClient>(new ParameterClient(
      std::move(options), clock, lanes_each, std::move(incarnations), std::move(ready)));
}

ParameterClient::ParameterClient(ClientOptions options, const Clock& clock, size_t lanes_each,
                                 std::vector<job::PsIncarnation> incarnations, ReadySet ready)
    : options_(std::move(options)),
      clock_(clock),
      lanes_each_(lanes_each),
      placement_(lanes_each * options_.servers.size()),
      versions_(placement_.lanes(), wire::Push::kNoVersion),
      ready_(std::move(ready)),
      incarnations_(std::move(incarnations)),
      restarted_(options_.servers.size()) {
  for (size_t place = 0; place < placement_.lanes(); ++place) {
    const ServerAddress& server = options_.servers[place / lanes_each];
    const job::PsIncarnation incarnation = incarnations_[place / lanes_each];
    lanes_.push_back(std::make_unique<LaneChannel>(
        ChannelOptions{
            .link = {.host = server.host,
                     .port = server.port,
                     .token = options_.token,
                     .caller = options_.caller,
                     .lane_in_server = job::LaneInServer(static_cast<uint32_t>(place % lanes_each)),
                     .lane_in_job = LaneAt(place),
                     .lanes_in_job = static_cast<uint32_t>(placement_.lanes()),
                     .limits = options_.limits},
            .transport = options_.transport,
            .timeout = options_.timeout,
            .silence = options_.silence,
            .incarnation = options_.follows_restarts ? job::PsIncarnation() : incarnation},
        place, ready_, clock_));
  }
}

size_t ParameterClient::servers_through_shared_memory() const {
  size_t count = 0;
  for (size_t server = 0; server < options_.servers.size(); ++server) {
    const auto first = lanes_.begin() + static_cast<ptrdiff_t>(server * lanes_each_);
    count += std::any_of(first, first + static_cast<ptrdiff_t>(lanes_each_),
                         [](const auto& lane) { return lane->uses_shared_memory(); })
                 ? 1
                 : 0;
  }
  return count;
}

LinkRequest& ParameterClient::Add(Operation& operation, size_t lane, MessageType type) {
  operation.requests.push_back({.lane = lane, .request = {.type = type}});
  return operation.requests.back().request;
}

Status ParameterClient::CheckSizes(const Operation& operation) const {
  for (const auto& [lane, request] : operation.requests) {
    const size_t bytes = wire::AlignedUp(request.meta.size()) +
                         std::max(request.tensors.bytes(), request.buffers.bytes());
    if (bytes > options_.limits.body_bytes) {
      return ResourceExhausted(
          "lane {} of {}: the message has {} bytes, and a frame may have {}; use fewer ids at "
          "once, or "
          "spread the parameters over more servers or lanes",
          lane, lanes_.size(), bytes, options_.limits.body_bytes);
    }
    if (request.meta.size() > options_.limits.meta_bytes) {
      return ResourceExhausted(
          "the message has too many tables and tensors: {} bytes, and the limit is {}",
          request.meta.size(), options_.limits.meta_bytes);
    }
  }
  return Ok();
}

ParameterClient::Ticket ParameterClient::Start(std::unique_ptr<Operation> operation) {
  operation->failure = CheckSizes(*operation);
  if (operation->failure.ok()) {
    operation->remaining = operation->requests.size();
    for (auto& [lane, request] : operation->requests) {
      request.remaining = &operation->remaining;
      lanes_[lane]->Send(request);
    }
    next_move_ = Time{};
  }
  operations_[++last_ticket_] = std::move(operation);
  Move();
  return last_ticket_;
}

Result<std::unique_ptr<ParameterClient::Operation>> ParameterClient::Wait(Ticket ticket) {
  while (!IsDone(ticket)) {
    if (IsStopped(options_))
      return Cancelled("stopped while waiting for an answer of a parameter server");
    Move();
    if (!IsDone(ticket)) WaitToMove(-1);
  }
  const auto found = operations_.find(ticket);
  std::unique_ptr<Operation> operation = std::move(found->second);
  operations_.erase(found);
  EDL_RETURN_IF_ERROR(operation->failure);
  for (const auto& [lane, request] : operation->requests) {
    if (!request.status.ok()) return request.status;
    incarnations_[lane / lanes_each_] = request.incarnation;
  }
  return operation;
}

bool ParameterClient::IsDone(Ticket ticket) const {
  const auto found = operations_.find(ticket);
  CHECK(found != operations_.end(),
        "operation {} was not started, or Wait was called for it before", ticket);
  return found->second->remaining == 0;
}

void ParameterClient::Move() {
  for (const size_t lane : ready_.Take()) {
    if (IsStopped(options_)) return;
    lanes_[lane]->OnReady();
    MoveLane(lane);
  }
  if (clock_.Now() >= next_move_) {
    const Time now = clock_.Now();
    next_move_ = Time::max();
    for (size_t lane = 0; lane < lanes_.size(); ++lane) {
      // The code that stopped this client may have freed the memory for answers.
      if (IsStopped(options_)) return;
      if (lanes_[lane]->next_move() <= now) MoveLane(lane);
      next_move_ = std::min(next_move_, lanes_[lane]->next_move());
    }
  }
  ReviewOpens();
}

void ParameterClient::MoveLane(size_t lane) {
  LaneChannel& channel = *lanes_[lane];
  const uint64_t before = channel.restarts();
  channel.Move();
  next_move_ = std::min(next_move_, channel.next_move());
  if (channel.restarts() == before) return;
  // Each lane of a server detects the restart; it counts once.
  job::PsIncarnation& known = restarted_[lane / lanes_each_];
  if (known != channel.expected() && options_.restarts != nullptr) options_.restarts->fetch_add(1);
  known = channel.expected();
}

void ParameterClient::WaitToMove(int wake) {
  const Duration left = std::max<Duration>(next_move_ - clock_.Now(), Duration::zero());
  // options_.stop is polled, unless the caller has a descriptor that wakes it.
  const Duration longest = wake < 0 && options_.stop != nullptr ? kPause : std::chrono::minutes(1);
  const auto timeout =
      std::chrono::ceil<std::chrono::milliseconds>(std::min<Duration>(left, longest));
  std::array<pollfd, 2> waiting = {pollfd{.fd = ready_.fd(), .events = POLLIN, .revents = 0},
                                   pollfd{.fd = wake, .events = POLLIN, .revents = 0}};
  poll(waiting.data(), waiting.size(), static_cast<int>(timeout.count()));  // it skips -1
}

void ParameterClient::AddTensor(size_t tensor, size_t lane, const float* values,
                                Tensors& tensors) const {
  for (const TensorLayout::Range& range : layouts_[tensor].RangesOf(lane)) {
    tensors.Continue(values + range.begin, range.count * sizeof(float));
  }
  tensors.End();
}

Status ParameterClient::Declare(Parameters parameters) {
  const size_t bytes = wire::Encode(wire::Declare{.text = parameters.text}).size();
  if (bytes > options_.limits.meta_bytes) {
    return ResourceExhausted(
        "the declaration has {} bytes, and the limit is {}; declare fewer tables, or use shorter "
        "names",
        bytes, options_.limits.meta_bytes);
  }
  for (const auto& lane : lanes_) lane->Declare(parameters.text);
  layouts_.clear();
  for (const Parameters::Tensor& tensor : parameters.tensors) {
    layouts_.emplace_back(tensor.name, tensor.size, placement_);
  }
  parameters_ = std::move(parameters);
  // A lane answers in order: the empty pull is answered when the lane has handled the declaration.
  auto operation = std::make_unique<Operation>();
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    Add(*operation, lane, MessageType::kPull).meta = wire::Encode(wire::Pull{});
  }
  return Wait(Start(std::move(operation))).status();
}

Result<size_t> ParameterClient::Put(const std::vector<TensorValues>& tensors) {
  size_t taken = 0;
  size_t next = 0;
  // As many tensors at a time as fit into a frame, and at least one.
  while (next < tensors.size()) {
    const size_t first = next;
    std::vector<size_t> bytes(lanes_.size());
    const auto fits = [&](const TensorValues& tensor) {
      bool all_fit = true;
      for (size_t lane = 0; lane < lanes_.size(); ++lane) {
        bytes[lane] += wire::AlignedUp(layouts_[tensor.tensor].CountOf(lane) * sizeof(float));
        all_fit = all_fit && bytes[lane] <= MostTensorBytes();
      }
      return all_fit;
    };
    while (next < tensors.size() && (fits(tensors[next]) || next == first)) ++next;
    auto operation = std::make_unique<Operation>();
    for (size_t lane = 0; lane < lanes_.size(); ++lane) {
      LinkRequest& request = Add(*operation, lane, MessageType::kPut);
      wire::Put put;
      for (size_t i = first; i < next; ++i) {
        put.tensors.push_back(static_cast<uint32_t>(tensors[i].tensor));
        AddTensor(tensors[i].tensor, lane, tensors[i].values, request.tensors);
      }
      request.meta = wire::Encode(put);
    }
    EDL_ASSIGN_OR_RETURN(operation, Wait(Start(std::move(operation))));
    for (const auto& [lane, request] : operation->requests) {
      wire::PutAnswer answer;
      EDL_RETURN_IF_ERROR(wire::Decode(AsBytes(request.answer), answer));
      taken += answer.taken;
    }
  }
  return taken;
}

size_t ParameterClient::MostTensorBytes() const {
  // The rest is for the meta part, which lists the tables and tensors of a message.
  return options_.limits.body_bytes -
         std::min<uint64_t>(options_.limits.body_bytes / 2, options_.limits.meta_bytes);
}

// Tensors that do not fit into one answer are pulled by several requests.
void ParameterClient::AddPulls(const PullSpec& spec, size_t lane, Operation& operation) const {
  LinkRequest* request = &Add(operation, lane, MessageType::kPull);
  wire::Pull pull{.unknown = spec.unknown};
  for (const TablePull& table : spec.tables) {
    const size_t begin = table.keys->BeginOf(lane);
    const size_t count = table.keys->SizeOf(lane);
    const size_t dim = parameters_.table_dims[table.table];
    pull.tables.push_back(
        {.table = static_cast<uint32_t>(table.table), .ids = static_cast<uint32_t>(count)});
    request->tensors.Add(table.keys->ids().data() + begin, count * sizeof(int64_t));
    request->buffers.Add(table.rows + begin * dim, count * dim * sizeof(float));
  }
  for (const TensorPull& tensor : spec.tensors) {
    const size_t bytes = layouts_[tensor.tensor].CountOf(lane) * sizeof(float);
    if (request->buffers.bytes() > 0 && request->buffers.bytes() + bytes > MostTensorBytes()) {
      request->meta = wire::Encode(pull);
      pull = {.unknown = spec.unknown, .tables = {}, .tensors = {}};
      request = &Add(operation, lane, MessageType::kPull);
    }
    pull.tensors.push_back(static_cast<uint32_t>(tensor.tensor));
    AddTensor(tensor.tensor, lane, tensor.values, request->buffers);
  }
  request->meta = wire::Encode(pull);
}

ParameterClient::Ticket ParameterClient::StartPull(const PullSpec& spec) {
  auto operation = std::make_unique<Operation>();
  operation->makes_rows = spec.unknown == wire::Pull::Unknown::kMake;
  for (size_t lane = 0; lane < lanes_.size(); ++lane) AddPulls(spec, lane, *operation);
  return Start(std::move(operation));
}

Status ParameterClient::WaitPull(Ticket ticket, Versions* versions) {
  EDL_ASSIGN_OR_RETURN(const auto operation, Wait(ticket));
  Versions pulled(lanes_.size(), wire::Push::kNoVersion);
  for (const auto& [lane, request] : operation->requests) {
    wire::PullAnswer answer;
    EDL_RETURN_IF_ERROR(wire::Decode(AsBytes(request.answer), answer));
    pulled[lane] = std::min(pulled[lane], answer.version);
  }
  // A pull that creates no rows is an evaluation: no batch is computed with its parameters.
  if (operation->makes_rows) versions_ = pulled;
  if (versions != nullptr) *versions = std::move(pulled);
  return Ok();
}

ParameterClient::Ticket ParameterClient::StartOpen(job::LeaseId lease, const wire::ShardKey& shard,
                                                   job::PsEpoch at_least_epoch) {
  auto operation = std::make_unique<Operation>();
  operation->at_least_epoch = at_least_epoch;
  operation->since = clock_.Now();
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    Add(*operation, lane, MessageType::kOpen).meta =
        wire::Encode(wire::Open{.lease = lease, .shard = shard});
  }
  if (at_least_epoch != job::PsEpoch()) opens_.push_back(last_ticket_ + 1);
  return Start(std::move(operation));
}

void ParameterClient::ReviewOpens() {
  for (size_t i = 0; i < opens_.size();) {
    const auto found = operations_.find(opens_[i]);
    if (found != operations_.end()) ReviewOpen(*found->second);
    if (found != operations_.end() && found->second->remaining > 0) {
      ++i;
    } else {
      opens_.erase(opens_.begin() + static_cast<ptrdiff_t>(i));
    }
  }
}

void ParameterClient::ReviewOpen(Operation& operation) {
  bool is_late = false;
  for (auto& [lane, request] : operation.requests) {
    wire::OpenAnswer answer;
    if (!request.done || !request.status.ok() ||
        !wire::Decode(AsBytes(request.answer), answer).ok() ||
        answer.ps_epoch >= operation.at_least_epoch) {
      continue;
    }
    const LinkOptions& to = lanes_[lane]->to();
    const Status why =
        Unavailable("lane {} of server {}:{} serves epoch {}, and epoch {} has begun",
                    to.lane_in_server, to.host, to.port, answer.ps_epoch, operation.at_least_epoch);
    if (clock_.Now() - operation.since >= options_.timeout) {
      request.status = why;
      continue;
    }
    if (!is_late) ++operation.rounds;
    is_late = true;
    lanes_[lane]->Drop(kReopen.After(operation.rounds), why);
    request.done = false;
    request.answer.clear();
    ++operation.remaining;
    lanes_[lane]->Send(request);
    next_move_ = std::min(next_move_, lanes_[lane]->next_move());
  }
}

Result<ParameterClient::Opened> ParameterClient::WaitOpen(Ticket ticket) {
  EDL_ASSIGN_OR_RETURN(const auto operation, Wait(ticket));
  Opened lowest{.watermark = UINT64_MAX, .ps_epoch = job::PsEpoch(UINT64_MAX)};
  for (const auto& [lane, request] : operation->requests) {
    wire::OpenAnswer answer;
    EDL_RETURN_IF_ERROR(wire::Decode(AsBytes(request.answer), answer));
    lowest.watermark = std::min(lowest.watermark, answer.watermark);
    lowest.ps_epoch = std::min(lowest.ps_epoch, answer.ps_epoch);
  }
  return lowest;
}

bool ParameterClient::AllFinite(const PushSpec& spec) const {
  const auto is_sound = [&](const float* values, size_t count) {
    return AreAllFinite({values, count});
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

ParameterClient::Ticket ParameterClient::StartPush(const PushSpec& spec) {
  auto operation = std::make_unique<Operation>();
  operation->refused = !AllFinite(spec);
  const Versions& versions = spec.versions != nullptr ? *spec.versions : versions_;
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    LinkRequest& request = Add(*operation, lane, MessageType::kPush);
    wire::Push push{.lease = spec.lease,
                    .shard = spec.shard,
                    .batch = spec.batch,
                    .refused = operation->refused,
                    .version = versions[lane]};
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
        AddTensor(tensor.tensor, lane, tensor.gradients, request.tensors);
      }
    }
    request.meta = wire::Encode(push);
  }
  return Start(std::move(operation));
}

Result<PushResult> ParameterClient::WaitPush(Ticket ticket) {
  EDL_ASSIGN_OR_RETURN(const auto operation, Wait(ticket));
  PushResult result{.watermark = UINT64_MAX, .refused = operation->refused};
  for (const auto& [lane, request] : operation->requests) {
    wire::PushAnswer answer;
    EDL_RETURN_IF_ERROR(wire::Decode(AsBytes(request.answer), answer));
    const bool is_worse = Severity(answer.outcome) > Severity(result.outcome);
    if (is_worse) result.outcome = answer.outcome;
    result.watermark = std::min(result.watermark, answer.watermark);
  }
  return result;
}

Result<std::vector<LaneAnswer>> ParameterClient::AskAll(MessageType type,
                                                        const std::vector<std::string>& metas) {
  std::vector<Question> questions;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    questions.push_back({.to = lanes_[i]->to(), .meta = metas[i]});
  }
  // Without a limit, as long as the servers can be reached.
  return Ask(type, questions,
             {.dial = kAttempt,
              .timeout = {},
              .silence = std::min(options_.silence, options_.timeout),
              .stop = options_.stop},
             clock_);
}

Status ParameterClient::Flush() {
  return AskAll(MessageType::kFlush, std::vector<std::string>(lanes_.size())).status();
}

Result<ParameterClient::SaveResult> ParameterClient::Save(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return StatusFromErrno(error.value(), fmt::format("making {}", folder.string()));
  EDL_ASSIGN_OR_RETURN(const bool is_checkpoint, checkpoint::HasManifest(folder));
  if (is_checkpoint) {
    return AlreadyExists("{} already contains a checkpoint: save to another folder",
                         folder.string());
  }
  checkpoint::NewCheckpoint checkpoint(folder);
  std::vector<std::string> metas;
  for (size_t place = 0; place < lanes_.size(); ++place) {
    metas.push_back(
        checkpoint.AddPart(LaneAt(place), lanes_.size(), incarnations_[place / lanes_each_]));
  }
  const auto saved = AskAll(MessageType::kSave, metas);
  if (!saved.ok()) {
    // A lane that failed has removed its part; other lanes may have written theirs. After
    // AlreadyExists the parts may belong to another save.
    if (saved.status().code() != Code::kAlreadyExists) checkpoint.RemoveParts();
    return saved.status();
  }
  for (size_t place = 0; place < lanes_.size(); ++place) {
    EDL_RETURN_IF_ERROR(checkpoint.AddAnswer(place, (*saved)[place].meta));
  }
  EDL_RETURN_IF_ERROR(checkpoint::WriteManifest(folder, checkpoint.manifest()));
  return SaveResult{.bytes = checkpoint.total().bytes,
                    .seconds = checkpoint.total().seconds,
                    .longest_pause_seconds = checkpoint.total().longest_pause_seconds};
}

Result<uint64_t> ParameterClient::Restore(const std::filesystem::path& folder) {
  EDL_ASSIGN_OR_RETURN(const checkpoint::Manifest manifest, checkpoint::ReadManifest(folder));
  std::vector<std::string> metas;
  for (size_t place = 0; place < lanes_.size(); ++place) {
    metas.push_back(wire::Encode(
        wire::Restore{.paths = manifest.PathsFor(folder, placement_.FirstOf(LaneAt(place)),
                                                 placement_.EndOf(LaneAt(place)))}));
  }
  const auto restored = AskAll(MessageType::kRestore, metas);
  if (!restored.ok()) {
    // All or nothing: a restore without parts empties the lanes that have loaded theirs.
    metas.assign(lanes_.size(), wire::Encode(wire::Restore{}));
    (void)AskAll(MessageType::kRestore, metas);
    return restored.status();
  }
  const std::vector<LaneAnswer>& answers = *restored;
  uint64_t rows = 0;
  std::vector<job::PsIncarnation> incarnations(options_.servers.size());
  for (size_t place = 0; place < answers.size(); ++place) {
    wire::RestoreAnswer answer;
    EDL_RETURN_IF_ERROR(wire::Decode(AsBytes(answers[place].meta), answer));
    rows += answer.rows;
    incarnations[place / lanes_each_] = answers[place].incarnation;
  }
  Expect(incarnations);
  return rows;
}

void ParameterClient::Expect(const std::vector<job::PsIncarnation>& incarnations) {
  incarnations_ = incarnations;
  if (options_.follows_restarts) return;
  for (size_t place = 0; place < lanes_.size(); ++place) {
    lanes_[place]->Expect(incarnations[place / lanes_each_]);
  }
}

}  // namespace edl::ps_client
