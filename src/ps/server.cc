#include "ps/server.h"

#include <algorithm>
#include <utility>

#include <poll.h>

#include "base/log.h"
#include "wire/placement.h"
#include "wire/ring.h"
#include "wire/socket.h"

namespace edl::ps {
namespace {

// Connections that have not said what they want; the oldest goes when there are more.
constexpr size_t kMostGuests = 256;
// A guest is read no further than a Hello may be long.
constexpr wire::FrameLimits kHelloLimits{.body_bytes = 64 << 10, .meta_bytes = 64 << 10};

// Compares without telling by the time it takes how much of it was right.
bool IsSame(std::string_view given, std::string_view wanted) {
  if (given.size() != wanted.size()) return false;
  unsigned char differs = 0;
  for (size_t i = 0; i < given.size(); ++i) {
    differs |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(wanted[i]);
  }
  return differs == 0;
}

}  // namespace

struct Server::Worker {
  Worker(const wire::Placement& placement, size_t place, std::unique_ptr<wire::EventLoop> loop,
         wire::EventLoop& disk, const Clock& clock, const ServerOptions& options)
      : lane(placement, place), clock(clock), thread(std::move(loop)) {
    service.incarnation = options.incarnation;
    service.managed = options.managed;
    service.serves = service.may_push = !options.managed;
    service.on_change = [this] { thread.loop().Post([this] { ResumeAll(); }); };
    thread.Run([&] {
      saver = std::make_unique<LaneSaver>(
          lane, thread.loop(), disk, clock, options.save_buffer_bytes, [this] { ResumeAll(); },
          &counters.saved_bytes);
    });
  }

  void ResumeAll() {
    for (const auto& [number, session] : sessions) session->Resume();
  }

  void Take(std::unique_ptr<wire::Stream> stream, const wire::FrameHeader& hello,
            const wire::Welcome& welcome, const wire::FrameLimits& limits) {
    const uint64_t number = ++last_session;
    const auto on_end = [this, number](const Status& why) {
      if (!why.ok()) LOG_INFO("a worker's connection ended: {}", why.message());
      thread.loop().Post([this, number] { sessions.erase(number); });
    };
    sessions[number] =
        std::make_unique<Session>(thread.loop(), std::move(stream), limits, lane, *saver, service,
                                  counters, hello, welcome, clock, on_end);
  }

  LaneState State() const {
    uint64_t requests = 0;
    uint64_t answer_bytes = 0;
    for (const auto& [number, session] : sessions) {
      requests += session->has_request_waiting() ? 1 : 0;
      answer_bytes += session->answer_bytes_waiting();
    }
    return {.rows = lane.rows(),
            .bytes = lane.bytes(),
            .evicted = lane.evicted(),
            .version = lane.version(),
            .requests_waiting = requests,
            .answer_bytes_waiting = answer_bytes,
            .least_contributed = lane.Contributed().first,
            .most_contributed = lane.Contributed().second,
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
  LaneService service;
  std::unique_ptr<LaneSaver> saver;
  uint64_t last_session = 0;
  std::map<uint64_t, std::unique_ptr<Session>> sessions;
  wire::LoopThread thread;  // ends before what it uses
};

struct Server::Guest {
  std::unique_ptr<wire::Connection> connection;
};

Result<std::unique_ptr<Server>> Server::Start(ServerOptions options, const Clock& clock) {
  // Each by itself first, for a product may be too large to be one.
  const bool sane = options.lanes > 0 && options.lanes <= wire::kBuckets && options.servers > 0 &&
                    options.servers <= wire::kBuckets;
  if (!sane || options.lanes * options.servers > wire::kBuckets) {
    return InvalidArgument("{} servers of {} lanes: there may be 1 to {} lanes in all",
                           options.servers, options.lanes, wire::kBuckets);
  }
  if (options.index >= options.servers) {
    return InvalidArgument("server {} of {}: they are counted from 0", options.index,
                           options.servers);
  }
  EDL_ASSIGN_OR_RETURN(wire::TcpListener tcp, wire::ListenTcp(options.host, options.port));
  EDL_ASSIGN_OR_RETURN(FileDescriptor unix, wire::ListenUnix(wire::RingName(tcp.port)));
  std::vector<std::unique_ptr<wire::EventLoop>> loops;
  for (size_t i = 0; i < options.lanes + 2; ++i) {
    EDL_ASSIGN_OR_RETURN(auto loop, wire::EventLoop::Make());
    loops.push_back(std::move(loop));
  }
  return std::unique_ptr<Server>(new Server(std::move(options), clock, tcp.port,
                                            std::move(tcp.socket), std::move(unix),
                                            std::move(loops)));
}

Server::Server(ServerOptions options, const Clock& clock, uint16_t port, FileDescriptor tcp,
               FileDescriptor unix, std::vector<std::unique_ptr<wire::EventLoop>> loops)
    : options_(std::move(options)),
      port_(port),
      tcp_(std::move(tcp)),
      unix_(std::move(unix)),
      disk_(std::move(loops[loops.size() - 2])),
      door_(std::move(loops.back())) {
  const wire::Placement placement(options_.lanes * options_.servers);
  for (size_t i = 0; i < options_.lanes; ++i) {
    workers_.push_back(std::make_unique<Worker>(placement, options_.index * options_.lanes + i,
                                                std::move(loops[i]), disk_.loop(), clock,
                                                options_));
  }
  door_.Run([this] {
    door_.loop().Add(tcp_.get(), POLLIN, [this] { AcceptTcp(); });
    door_.loop().Add(unix_.get(), POLLIN, [this] { AcceptRing(); });
  });
}

Server::~Server() {
  // Nobody comes any more before the lanes end.
  door_.Run([this] {
    door_.loop().Remove(tcp_.get());
    door_.loop().Remove(unix_.get());
    guests_.clear();
    for (const FileDescriptor& ring : rings_) door_.loop().Remove(ring.get());
    rings_.clear();
  });
  for (const auto& worker : workers_) {
    worker->thread.Run([&] {
      worker->sessions.clear();
      worker->saver.reset();
    });
  }
}

void Server::AcceptTcp() {
  while (true) {
    Result<std::optional<FileDescriptor>> accepted = wire::Accept(tcp_);
    if (!accepted.ok()) LOG_WARNING("{}", accepted.status().message());
    if (!accepted.ok() || !accepted->has_value()) return;
    Admit(std::make_unique<wire::SocketStream>(**std::move(accepted)));
  }
}

void Server::AcceptRing() {
  while (true) {
    Result<std::optional<FileDescriptor>> accepted = wire::Accept(unix_);
    if (!accepted.ok()) LOG_WARNING("{}", accepted.status().message());
    if (!accepted.ok() || !accepted->has_value()) return;
    if (rings_.size() >= kMostGuests) {
      door_.loop().Remove(rings_.front().get());
      rings_.pop_front();
    }
    const auto entry = rings_.insert(rings_.end(), **std::move(accepted));
    // Its memory comes with the first byte.
    door_.loop().Add(entry->get(), POLLIN, [this, entry] {
      FileDescriptor socket = std::move(*entry);
      door_.loop().Remove(socket.get());
      rings_.erase(entry);
      Result<std::unique_ptr<wire::Stream>> stream = wire::AcceptRing(std::move(socket));
      if (stream.ok()) {
        Admit(*std::move(stream));
      } else {
        LOG_INFO("a connection through shared memory was refused: {}", stream.status().message());
      }
    });
  }
}

void Server::Admit(std::unique_ptr<wire::Stream> stream) {
  if (guests_.size() >= kMostGuests) guests_.pop_front();
  guests_.push_back(std::make_unique<Guest>());
  Guest& guest = *guests_.back();
  guest.connection = std::make_unique<wire::Connection>(
      door_.loop(), std::move(stream), kHelloLimits,
      [this, &guest](const wire::Frame& frame) {
        Greet(guest, frame);
        return wire::Connection::Taken::kYes;
      },
      [this, &guest](const Status&) { Forget(guest); });
}

void Server::Forget(Guest& guest) {
  door_.loop().Post([this, &guest] {
    guests_.remove_if([&](const std::unique_ptr<Guest>& entry) { return entry.get() == &guest; });
  });
}

Status Server::Check(const wire::Hello& hello) const {
  if (!IsSame(hello.token, options_.token)) {
    return Unauthenticated("{} has not the token of this job", hello.caller);
  }
  if (hello.lanes == 0) return Ok();
  const size_t lanes = options_.lanes * options_.servers;
  const size_t place = options_.index * options_.lanes + hello.lane;
  if (hello.lane >= options_.lanes || hello.place != place || hello.lanes != lanes) {
    return FailedPrecondition(
        "{} looks for lane {} here, as number {} of {}; this is server {} of {} with {} lanes each",
        hello.caller, hello.lane, hello.place, hello.lanes, options_.index, options_.servers,
        options_.lanes);
  }
  return Ok();
}

void Server::Greet(Guest& guest, const wire::Frame& frame) {
  wire::Connection& connection = *guest.connection;
  wire::Hello hello;
  const Status checked = [&] {
    if (frame.header.type != static_cast<uint8_t>(wire::MessageType::kHello)) {
      return FailedPrecondition("a connection begins with Hello, and not with type {}",
                                frame.header.type);
    }
    EDL_RETURN_IF_ERROR(wire::Decode(frame.meta(), hello));
    return Check(hello);
  }();
  if (!checked.ok()) {
    LOG_WARNING("a connection was refused: {}", checked.message());
    connection.Refuse(frame.header, checked);
    connection.Close();
    return;
  }
  wire::Welcome welcome{.incarnation = options_.incarnation,
                        .lanes = static_cast<uint32_t>(options_.lanes),
                        .servers = static_cast<uint32_t>(options_.servers),
                        .index = static_cast<uint32_t>(options_.index)};
  for (const auto& worker : workers_) {
    welcome.progress_bytes += worker->counters.saved_bytes + worker->counters.restored_bytes;
  }
  if (hello.lanes == 0) {
    connection.Answer(frame.header, wire::Encode(welcome));
    return;
  }
  // The lane's from now on. A function that is posted can be copied, and a stream cannot.
  const auto stream = std::make_shared<std::unique_ptr<wire::Stream>>(connection.Release());
  Forget(guest);
  Worker& worker = *workers_[hello.lane];
  worker.thread.loop().Post([this, &worker, stream, header = frame.header, welcome] {
    worker.Take(std::move(*stream), header, welcome, options_.limits);
  });
}

void Server::Leave() {
  for (const auto& worker : workers_) {
    worker->thread.Run([&] { worker->service.leaving = true; });
  }
}

bool Server::IsReleased() {
  bool released = true;
  for (const auto& worker : workers_) {
    worker->thread.Run([&] {
      const LaneService& service = worker->service;
      released = released && (!service.managed || !service.serves || service.released);
    });
  }
  return released;
}

std::vector<LaneState> Server::State() {
  std::vector<LaneState> states;
  for (const auto& worker : workers_) {
    worker->thread.Run([&] { states.push_back(worker->State()); });
  }
  return states;
}

}  // namespace edl::ps
