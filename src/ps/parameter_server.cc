#include "ps/parameter_server.h"

#include <algorithm>
#include <utility>

#include <poll.h>

#include "base/log.h"
#include "base/secret.h"
#include "wire/placement.h"
#include "wire/ring.h"
#include "wire/socket.h"

namespace edl::ps {
namespace {

// Limit of connections that have not named a lane; above it, the oldest is closed.
constexpr size_t kMostPending = 256;
// Limit of Hello messages on a connection that does not name a lane.
constexpr int kMostHellos = 64;
// How long the server does not accept connections after the process had no descriptors left.
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr std::chrono::seconds kLogEvery{1};
constexpr size_t kMostOfCaller = 100;
// A connection without a lane may send only a Hello, which is short.
constexpr wire::FrameLimits kHelloLimits{.body_bytes = 64 << 10, .meta_bytes = 64 << 10};

// The name that a caller gives itself, shortened and made printable for messages.
std::string Printable(std::string_view caller) {
  std::string shown(caller.substr(0, kMostOfCaller));
  std::ranges::replace_if(
      shown, [](unsigned char c) { return c < 0x20 || c > 0x7e; }, '?');
  return shown.empty() ? "a caller without a name" : shown;
}

checkpoint::CheckpointFiles FilesOf(const ServerOptions& options) {
  const bool anywhere = options.checkpoint_roots.empty() && !options.token.empty();
  return anywhere ? checkpoint::CheckpointFiles::Anywhere()
                  : checkpoint::CheckpointFiles::Below(options.checkpoint_roots);
}

}  // namespace

struct ParameterServer::LaneThread {
  LaneThread(const wire::Placement& placement, job::LaneInJob place,
             std::unique_ptr<EventLoop> loop, EventLoop& disk, const Clock& clock,
             const ServerOptions& options)
      : lane(placement, place), clock(clock), thread(std::move(loop)) {
    serving.incarnation = options.incarnation;
    serving.managed = options.managed;
    serving.serves = serving.may_push = !options.managed;
    serving.on_change = [this] { thread.loop().Post([this] { ResumeAll(); }); };
    const checkpoint::CheckpointFiles files = FilesOf(options);
    const size_t buffer_bytes = std::max<size_t>(options.save_buffer_bytes / options.lanes, 1);
    thread.Run([&] {
      saver = std::make_unique<LaneSaver>(
          lane.state(), thread.loop(), disk, clock, [this] { ResumeAll(); },
          LaneSaver::Options{
              .buffer_bytes = buffer_bytes, .files = files, .saved_bytes = &counters.saved_bytes});
      restorer = std::make_unique<LaneRestorer>(thread.loop(), files, &counters.restored_bytes);
    });
  }

  // Checks periodically whether the master is in contact. Fails when there are no descriptors left.
  Status WatchMaster(Duration fence_after) {
    Status status;
    thread.Run([&] {
      Result<std::unique_ptr<Timer>> made =
          Timer::Make(thread.loop(), [this, fence_after] { CheckMaster(fence_after); });
      status = made.status();
      if (!made.ok()) return;
      timer = *std::move(made);
      timer->SetEvery(fence_after / 10);
    });
    return status;
  }

  void CheckMaster(Duration fence_after) {
    const Time now = clock.Now();
    if (!serving.serves || now - serving.last_contact < fence_after) return;
    if (!serving.fenced) {
      LOG_WARNING(
          "no request of the master for {} s: this lane accepts no pushes until one comes",
          std::chrono::duration_cast<std::chrono::seconds>(now - serving.last_contact).count());
    } else if (now - dropped < fence_after) {
      return;
    }
    // Workers that connect again are disconnected again, so that they find a successor.
    serving.fenced = true;
    dropped = now;
    for (const auto& [number, session] : sessions) session->DropWorker();
  }

  void ResumeAll() {
    for (const auto& [number, session] : sessions) session->Resume();
  }

  void Take(std::unique_ptr<wire::Stream> stream, const wire::FrameHeader& hello,
            const wire::Welcome& welcome, const wire::FrameLimits& limits) {
    const uint64_t number = ++last_session;
    const auto on_end = [this, number](const Status& why) {
      if (!why.ok()) LOG_INFO("a connection was closed: {}", why.message());
      thread.loop().Post([this, number] { sessions.erase(number); });
    };
    const SessionContext context{.loop = thread.loop(),
                                 .lane = lane,
                                 .saver = *saver,
                                 .restorer = *restorer,
                                 .serving = serving,
                                 .counters = counters,
                                 .clock = clock,
                                 .limits = limits};
    sessions[number] =
        std::make_unique<LaneSession>(context, std::move(stream), hello, welcome, on_end);
  }

  LaneStats Stats() const {
    uint64_t requests = 0;
    uint64_t answer_bytes = 0;
    for (const auto& [number, session] : sessions) {
      requests += session->has_request_waiting() ? 1 : 0;
      answer_bytes += session->answer_bytes_waiting();
    }
    const LaneState& state = lane.state();
    const auto [least_contributed, most_contributed] = state.rounds.ContributedBounds();
    return {.rows = state.parameters.rows(),
            .bytes = state.parameters.bytes(),
            .evicted = state.parameters.evicted(),
            .version = lane.version(),
            .requests_waiting = requests,
            .answer_bytes_waiting = answer_bytes,
            .least_contributed = least_contributed,
            .most_contributed = most_contributed,
            .pulls = counters.pulls,
            .pushes = counters.pushes,
            .rows_pulled = counters.rows_pulled,
            .rows_pushed = counters.rows_pushed,
            .refusals = counters.refusals,
            .refused_batches = lane.refused(),
            .waits_for_saves = counters.waits_for_saves,
            .connections = sessions.size(),
            .pull_times = counters.pull_times.Read(),
            .push_times = counters.push_times.Read()};
  }

  Lane lane;
  const Clock& clock;
  LaneCounters counters;
  ServingState serving;
  std::unique_ptr<LaneSaver> saver;
  std::unique_ptr<LaneRestorer> restorer;
  std::unique_ptr<Timer> timer;  // null: the master is not watched
  Time dropped;                  // when workers were disconnected last
  uint64_t last_session = 0;
  std::map<uint64_t, std::unique_ptr<LaneSession>> sessions;
  LoopThread thread;  // last, so that it ends before the members that it uses
};

struct ParameterServer::PendingConnection {
  uint64_t number = 0;
  int hellos = 0;
  std::unique_ptr<wire::FrameConnection> connection;
};

Result<std::unique_ptr<ParameterServer>> ParameterServer::Start(ServerOptions options,
                                                                const Clock& clock) {
  // Each number is checked first, because the product may overflow.
  const bool sane = options.lanes > 0 && options.lanes <= wire::kBuckets && options.servers > 0 &&
                    options.servers <= wire::kBuckets;
  if (!sane || options.lanes * options.servers > wire::kBuckets) {
    return InvalidArgument("{} servers of {} lanes: a job has 1 to {} lanes", options.servers,
                           options.lanes, wire::kBuckets);
  }
  if (options.index >= options.servers) {
    return InvalidArgument("server {} of {}: the index starts at 0", options.index,
                           options.servers);
  }
  EDL_ASSIGN_OR_RETURN(wire::TcpListener tcp, wire::ListenTcp(options.host, options.port));
  FileDescriptor unix;
  if (Result<FileDescriptor> listener = wire::ListenUnix(wire::RingName(tcp.port)); listener.ok()) {
    unix = *std::move(listener);
  } else {
    LOG_WARNING("clients on this host cannot use shared memory, only TCP: {}",
                listener.status().message());
  }
  std::vector<std::unique_ptr<EventLoop>> loops;
  for (size_t i = 0; i < options.lanes + 2; ++i) {
    EDL_ASSIGN_OR_RETURN(auto loop, EventLoop::Make(clock));
    loops.push_back(std::move(loop));
  }
  std::unique_ptr<ParameterServer> server(new ParameterServer(std::move(options), clock, tcp.port,
                                                              std::move(tcp.socket),
                                                              std::move(unix), std::move(loops)));
  const ServerOptions& set = server->options_;
  for (const auto& lane : server->lanes_) {
    if (set.managed && set.fence_after > Duration::zero()) {
      EDL_RETURN_IF_ERROR(lane->WatchMaster(set.fence_after));
    }
  }
  EDL_RETURN_IF_ERROR(server->BeginAccepting());
  return server;
}

ParameterServer::ParameterServer(ServerOptions options, const Clock& clock, uint16_t port,
                                 FileDescriptor tcp, FileDescriptor unix,
                                 std::vector<std::unique_ptr<EventLoop>> loops)
    : options_(std::move(options)),
      clock_(clock),
      port_(port),
      tcp_(std::move(tcp)),
      unix_(std::move(unix)),
      disk_(std::move(loops[loops.size() - 2])),
      acceptor_(std::move(loops.back())) {
  const wire::Placement placement(options_.lanes * options_.servers);
  for (size_t i = 0; i < options_.lanes; ++i) {
    const job::LaneInJob place(static_cast<uint32_t>(options_.index * options_.lanes + i));
    lanes_.push_back(std::make_unique<LaneThread>(placement, place, std::move(loops[i]),
                                                  disk_.loop(), clock, options_));
  }
}

Status ParameterServer::BeginAccepting() {
  Status status;
  acceptor_.Run([&] {
    Result<std::unique_ptr<Timer>> made =
        Timer::Make(acceptor_.loop(), [this] { SetAccepting(true); });
    status = made.status();
    if (!made.ok()) return;
    resume_ = *std::move(made);
    status = acceptor_.loop().Add(tcp_.get(), 0, [this] { AcceptTcp(); });
    if (status.ok() && unix_.valid()) {
      status = acceptor_.loop().Add(unix_.get(), 0, [this] { AcceptRing(); });
    }
    if (status.ok()) SetAccepting(true);
  });
  return status;
}

ParameterServer::~ParameterServer() {
  // No connections are accepted while the lanes end.
  acceptor_.Run([this] {
    acceptor_.loop().Remove(tcp_.get());
    if (unix_.valid()) acceptor_.loop().Remove(unix_.get());
    resume_.reset();
    pending_.clear();
    for (const FileDescriptor& ring : rings_) acceptor_.loop().Remove(ring.get());
    rings_.clear();
  });
  for (const auto& lane : lanes_) {
    lane->thread.Run([&] {
      lane->timer.reset();
      lane->sessions.clear();
      lane->restorer.reset();
      lane->saver.reset();
    });
  }
  // The disk thread posts to the loops of the lanes: wait until it is idle before they end.
  disk_.Run([] {});
}

void ParameterServer::SetAccepting(bool accepting) {
  if (accepting == std::exchange(accepting_, accepting)) return;
  // The listeners stay in the loop, because adding them again could fail.
  const short events = accepting ? POLLIN : 0;
  acceptor_.loop().Change(tcp_.get(), events);
  if (unix_.valid()) acceptor_.loop().Change(unix_.get(), events);
}

void ParameterServer::PauseAccepting(const Status& why) {
  LogRefused(why.message());
  SetAccepting(false);
  resume_->SetOnce(kAcceptPause);
}

template <typename Take>
void ParameterServer::AcceptAll(const FileDescriptor& listener, const Take& take) {
  while (accepting_) {
    Result<std::optional<FileDescriptor>> accepted = wire::Accept(listener);
    if (!accepted.ok()) return PauseAccepting(accepted.status());
    if (!accepted->has_value()) return;
    take(**std::move(accepted));
  }
}

void ParameterServer::AcceptTcp() {
  AcceptAll(tcp_, [this](FileDescriptor socket) {
    Admit(std::make_unique<wire::SocketStream>(std::move(socket)));
  });
}

void ParameterServer::AcceptRing() {
  AcceptAll(unix_, [this](FileDescriptor accepted) {
    if (rings_.size() >= kMostPending) {
      acceptor_.loop().Remove(rings_.front().get());
      rings_.pop_front();
    }
    const auto entry = rings_.insert(rings_.end(), std::move(accepted));
    // The shared memory arrives with the first byte.
    const Status watched = acceptor_.loop().Add(entry->get(), POLLIN, [this, entry] {
      FileDescriptor socket = std::move(*entry);
      acceptor_.loop().Remove(socket.get());
      rings_.erase(entry);
      Result<std::unique_ptr<wire::Stream>> stream = wire::AcceptRing(std::move(socket));
      if (stream.ok()) {
        Admit(*std::move(stream));
      } else {
        LogRefused(stream.status().message());
      }
    });
    if (watched.ok()) return;
    rings_.erase(entry);
    PauseAccepting(watched);
  });
}

void ParameterServer::LogRefused(std::string_view what) {
  const Time now = clock_.Now();
  if (now - logged_ < kLogEvery) {
    ++not_logged_;
    return;
  }
  logged_ = now;
  LOG_WARNING("a connection was refused: {} ({} more since the last message)", what,
              std::exchange(not_logged_, 0));
}

void ParameterServer::Admit(std::unique_ptr<wire::Stream> stream) {
  if (pending_.size() >= kMostPending) pending_.erase(pending_.begin());
  const uint64_t number = ++last_pending_;
  PendingConnection& pending = *(pending_[number] = std::make_unique<PendingConnection>());
  pending.number = number;
  pending.connection = std::make_unique<wire::FrameConnection>(
      acceptor_.loop(), std::move(stream), kHelloLimits,
      [this, &pending](const wire::Frame& frame) {
        Handshake(pending, frame);
        return wire::FrameConnection::Handled::kDone;
      },
      [this, number](const Status& why) {
        if (why.code() == Code::kResourceExhausted) LogRefused(why.message());
        Forget(number);
      });
}

void ParameterServer::Forget(uint64_t pending) {
  acceptor_.loop().Post([this, pending] { pending_.erase(pending); });
}

Status ParameterServer::Check(const wire::Hello& hello) const {
  if (!SecretsEqual(hello.token, options_.token)) {
    return Unauthenticated("{} sent a wrong token: use the token of this job",
                           Printable(hello.caller));
  }
  if (hello.lanes_in_job == 0) return Ok();
  const size_t lanes = options_.lanes * options_.servers;
  const size_t place = options_.index * options_.lanes + hello.lane_in_server.value();
  if (hello.lane_in_server.value() >= options_.lanes || hello.lane_in_job.value() != place ||
      hello.lanes_in_job != lanes) {
    return FailedPrecondition(
        "{} expects lane {} of this server to be lane {} of {}; this is server {} of {} with {} "
        "lanes each: check the order of the servers",
        Printable(hello.caller), hello.lane_in_server, hello.lane_in_job, hello.lanes_in_job,
        options_.index, options_.servers, options_.lanes);
  }
  return Ok();
}

void ParameterServer::Handshake(PendingConnection& pending, const wire::Frame& frame) {
  wire::FrameConnection& connection = *pending.connection;
  wire::Hello hello;
  const Status checked = [&] {
    if (frame.header.type != static_cast<uint8_t>(wire::MessageType::kHello)) {
      return FailedPrecondition("a connection begins with Hello, and not with a message of type {}",
                                frame.header.type);
    }
    EDL_RETURN_IF_ERROR(wire::Decode(frame.meta(), hello));
    // A lane takes over only a connection that has nothing left to send.
    if (connection.outgoing_bytes() > 0 || ++pending.hellos > kMostHellos) {
      return ResourceExhausted(
          "{} Hello messages on a connection: read the answers, and name a lane", pending.hellos);
    }
    return Check(hello);
  }();
  if (!checked.ok()) {
    LogRefused(checked.message());
    connection.Refuse(frame.header, checked);
    connection.Close();
    return;
  }
  wire::Welcome welcome{.incarnation = options_.incarnation,
                        .lanes = static_cast<uint32_t>(options_.lanes),
                        .servers = static_cast<uint32_t>(options_.servers),
                        .index = static_cast<uint32_t>(options_.index)};
  for (const auto& lane : lanes_) {
    welcome.progress_bytes += lane->counters.saved_bytes + lane->counters.restored_bytes;
  }
  if (hello.lanes_in_job == 0) {
    connection.Answer(frame.header, wire::Encode(welcome));
    return;
  }
  // From now on the lane serves it. A posted function must be copyable, and a stream is not.
  const auto stream = std::make_shared<std::unique_ptr<wire::Stream>>(connection.Release());
  Forget(pending.number);
  LaneThread& lane = *lanes_[hello.lane_in_server.value()];
  lane.thread.loop().Post([this, &lane, stream, header = frame.header, welcome] {
    lane.Take(std::move(*stream), header, welcome, options_.limits);
  });
}

void ParameterServer::Leave() {
  for (const auto& lane : lanes_) {
    lane->thread.Run([&] { lane->serving.leaving = true; });
  }
}

bool ParameterServer::IsReleased() {
  bool released = true;
  for (const auto& lane : lanes_) {
    lane->thread.Run([&] {
      const ServingState& serving = lane->serving;
      released = released && (!serving.managed || !serving.serves || serving.released);
    });
  }
  return released;
}

std::vector<LaneStats> ParameterServer::State() {
  std::vector<LaneStats> stats;
  for (const auto& lane : lanes_) {
    lane->thread.Run([&] { stats.push_back(lane->Stats()); });
  }
  return stats;
}

}  // namespace edl::ps
