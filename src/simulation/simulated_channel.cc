#include "simulation/simulated_channel.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "ps_control/watch_channel.h"

namespace edl::master {
namespace {

using ps_client::LaneAnswer;
using std::chrono::seconds;

template <typename Message>
Message Read(const std::string& meta) {
  Message message;
  const Status read = wire::Decode(AsBytes(meta), message);
  CHECK(read.ok(), "a message of the controller: {}", read.message());
  return message;
}

}  // namespace

// --- SimulatedNetwork ---

// Most messages arrive soon, and some after the request has timed out.
Duration SimulatedNetwork::Delay() {
  return time_.Faulty() && time_.Chance() < 0.05 ? time_.Between(500, 10000) : time_.Between(1, 60);
}

// The time of a disk operation: usually up to `at_most` milliseconds, sometimes much longer.
Duration SimulatedNetwork::DiskTime(int at_most) {
  const bool is_slow = time_.Faulty() && time_.Chance() < plan_.slow_disk;
  return is_slow ? time_.Between(5000, 60000) : time_.Between(5, at_most);
}

void SimulatedNetwork::Finish(const RequestPtr& request, const Status& status) {
  if (!request->is_open || !*request->master_alive) return;
  request->is_open = false;
  // `finish` may own the last reference to the request.
  const auto finish = std::exchange(request->finish, nullptr);
  finish(status);
}

// A process that has exited is noticed soon, a machine that vanished after a while, and a process
// that hangs only by the deadline.
void SimulatedNetwork::Watch(const RequestPtr& request, std::optional<Time> deadline) {
  Duration next = seconds(1);
  if (deadline.has_value()) next = std::min<Duration>(next, *deadline - time_.now());
  time_.At(next, [this, request, deadline] {
    if (!request->is_open || !*request->master_alive) return;
    if (deadline.has_value() && time_.now() >= *deadline) {
      return Finish(request, DeadlineExceeded("no answer"));
    }
    const bool any_lost = std::ranges::any_of(
        request->unanswered, [this](const ServerPtr& server) { return servers_.IsLost(*server); });
    if (any_lost) return Finish(request, Unavailable("the connection was closed"));
    Watch(request, deadline);
  });
}

bool SimulatedNetwork::Break(const RequestPtr& request) {
  if (!time_.Lose()) return false;
  if (time_.Chance() < 0.8) {
    time_.At(time_.Between(1, 60),
             [request] { Finish(request, Unavailable("the connection broke")); });
  }
  return true;
}

void SimulatedNetwork::Hello(const RequestPtr& request, const ServerPtr& server,
                             std::shared_ptr<wire::Welcome> welcome) {
  request->unanswered.push_back(server);
  if (Break(request)) return;
  servers_.AtServer(server, time_.Between(1, 60), [this, request, server, welcome] {
    *welcome = {.incarnation = server->incarnation,
                .lanes = static_cast<uint32_t>(server->layout.lanes),
                .servers = static_cast<uint32_t>(server->layout.servers),
                .index = static_cast<uint32_t>(server->index),
                .progress_bytes = server->progress_bytes};
    time_.At(time_.Between(1, 20), [request] { Finish(request, Ok()); });
  });
}

void SimulatedNetwork::Answer(const RequestPtr& request, size_t place, const ServerPtr& server,
                              const Result<std::string>& meta) {
  time_.At(time_.Between(1, 30), [request, place, server, meta] {
    if (!request->is_open) return;
    if (!meta.ok()) return Finish(request, meta.status());
    request->answers[place] = {.meta = *meta, .incarnation = server->incarnation};
    request->unanswered.erase(std::ranges::find(request->unanswered, server));
    if (request->unanswered.empty()) Finish(request, Ok());
  });
}

void SimulatedNetwork::Send(const RequestPtr& request, size_t place, const ServerPtr& server,
                            size_t lane, wire::MessageType type, const std::string& meta) {
  switch (type) {
    case wire::MessageType::kSave:
      return Save(request, place, server, lane, meta);
    case wire::MessageType::kRestore:
      return Restore(request, place, server, lane, meta);
    case wire::MessageType::kFlush:
      return servers_.AtServer(server, Delay(), [this, request, place, server] {
        Answer(request, place, server, std::string());
      });
    case wire::MessageType::kState:
      if (Break(request)) return;
      // Not late: three late answers in a row would replace a healthy server too often.
      return servers_.AtServer(server, time_.Between(1, 60), [this, request, place, server, lane] {
        // A real server also answers during a restore; this one does not.
        if (time_.now() < server->busy_until) return;
        server->asked_at = time_.now();
        Answer(request, place, server,
               wire::Encode(wire::StateAnswer{
                   .ps_epoch = server->lanes[lane]->ps_epoch(),
                   .opens_waiting = static_cast<uint64_t>(server->lanes[lane]->opens_waiting())}));
      });
    case wire::MessageType::kServe: {
      const int times = time_.Faulty() && time_.Chance() < plan_.repeat ? 2 : 1;
      for (int i = 0; i < times; ++i) {
        if (Break(request)) continue;
        servers_.AtServer(server, Delay(),
                          [this, request, place, server, lane, meta, is_first = i == 0] {
                            const Result<std::string> answer = Serve(server, lane, meta);
                            if (is_first) Answer(request, place, server, answer);
                          });
      }
      return;
    }
    default:
      CHECK(false, "the controller sends a message of type {}", static_cast<int>(type));
  }
}

Result<std::string> SimulatedNetwork::Serve(const ServerPtr& server, size_t lane,
                                            const std::string& meta) {
  const auto serve = Read<wire::Serve>(meta);
  if (serve.incarnation != server->incarnation) {
    return FailedPrecondition("the request is for another incarnation of this server");
  }
  EDL_RETURN_IF_ERROR(server->lanes[lane]->Serve(serve));
  server->asked_at = time_.now();
  return std::string();
}

void SimulatedNetwork::Save(const RequestPtr& request, size_t place, const ServerPtr& server,
                            size_t lane, const std::string& meta) {
  const std::string path = Read<wire::Save>(meta).path;
  servers_.AtServer(
      server, Delay() + time_.Between(0, 1200), [this, request, place, server, lane, path] {
        if (!request->is_open) return;  // its connection is closed
        Result<SimulatedPart> part = server->lanes[lane]->Cut();
        if (!part.ok()) return Answer(request, place, server, part.status());
        ++server->progress_bytes;
        servers_.AtServer(
            server, DiskTime(1500), [this, request, place, server, path, part = std::move(*part)] {
              if (!request->is_open) return;
              ++server->progress_bytes;
              const Status written = storage_.WritePart(path, part);
              Answer(request, place, server,
                     written.ok() ? Result<std::string>(wire::Encode(wire::SaveAnswer{.bytes = 1}))
                                  : Result<std::string>(written));
            });
      });
}

void SimulatedNetwork::Restore(const RequestPtr& request, size_t place, const ServerPtr& server,
                               size_t lane, const std::string& meta) {
  const auto restore = Read<wire::Restore>(meta);
  servers_.AtServer(server, Delay(), [this, request, place, server, lane, restore] {
    if (restore.incarnation != server->incarnation) {
      return Answer(request, place, server,
                    FailedPrecondition("the request is for another incarnation of this server"));
    }
    // A lane runs one restore at a time, and completes one that it has started.
    const Time begin = std::max(time_.now(), server->lanes[lane]->restored_at());
    server->lanes[lane]->set_restored_at(begin + DiskTime(500));
    server->busy_until = std::max(server->busy_until, server->lanes[lane]->restored_at());
    servers_.AtServer(server, begin - time_.now(), [this, request, place, server, lane, restore] {
      const Status status = RestoreLane(*server, *server->lanes[lane], restore);
      ++server->progress_bytes;
      const Duration left = server->lanes[lane]->restored_at() - time_.now();
      servers_.AtServer(server, std::max<Duration>(left, Duration::zero()),
                        [this, request, place, server, status] {
                          ++server->progress_bytes;
                          Answer(request, place, server,
                                 status.ok()
                                     ? Result<std::string>(wire::Encode(wire::RestoreAnswer{}))
                                     : Result<std::string>(status));
                        });
    });
  });
}

Status SimulatedNetwork::RestoreLane(const SimulatedServers::Server& server, SimulatedLane& lane,
                                     const wire::Restore& restore) {
  std::vector<SimulatedPart> parts;
  bool damaged = false;
  if (!restore.paths.empty() && time_.now() < server.blind_until) {
    ++sums_.blind;
    if (mutant_ == Mutant::kMissingIsDamage) return DataLoss("part-0 is missing");
    return NotFound("part-0 is missing");
  }
  for (const std::string& path : restore.paths) {
    EDL_ASSIGN_OR_RETURN(SimulatedStorage::ReadPart read, storage_.Read(path));
    parts.push_back(std::move(read.part));
    damaged = damaged || read.damaged;
  }
  EDL_RETURN_IF_ERROR(lane.Restore(restore.ps_epoch, parts));
  if (damaged) return DataLoss("{} is damaged", restore.paths.front());
  return Ok();
}

// --- SimulatedChannel ---

SimulatedNetwork::RequestPtr SimulatedChannel::Begin(std::function<void(Status)> finish) {
  auto request = std::make_shared<SimulatedNetwork::Request>();
  request->master_alive = master_alive_;
  request->finish = std::move(finish);
  request_ = request;
  return request;
}

void SimulatedChannel::FailToConnect(const SimulatedNetwork::RequestPtr& request, int server) {
  VirtualTime& time = network_.time();
  time.At(time.Between(1, 1000), [request, server] {
    SimulatedNetwork::Finish(
        request, Unavailable("no process listens at the address of parameter server {}", server));
  });
}

void SimulatedChannel::Hello(int server, Duration timeout, OnWelcome done) {
  const auto welcome = std::make_shared<wire::Welcome>();
  const auto request = Begin([this, welcome, done = std::move(done)](const Status& status) {
    if (!status.ok()) control_ = lanes_ = nullptr;
    done(status.ok() ? Result<wire::Welcome>(*welcome) : Result<wire::Welcome>(status));
  });
  ServerPtr to = connections_ == Connections::kKept ? control_ : nullptr;
  if (hellos_ >= ps_control::WatchChannel::kMostHellos) to = nullptr;
  if (to == nullptr || network_.servers().IsLost(*to)) {
    to = network_.servers().Find(static_cast<size_t>(server));
    hellos_ = 0;
  }
  ++hellos_;
  control_ = to;
  if (to == nullptr) return FailToConnect(request, server);
  network_.Watch(request, network_.time().now() + timeout);
  network_.Hello(request, to, welcome);
}

void SimulatedChannel::Ask(wire::MessageType type, std::vector<ps_control::ServerMessage> messages,
                           std::optional<Duration> timeout, OnAnswers done) {
  const auto request = Begin(nullptr);
  request->finish = [this, done = std::move(done),
                     answers = &request->answers](const Status& status) {
    if (!status.ok()) lanes_ = nullptr;
    done(status.ok() ? Result<std::vector<LaneAnswer>>(*answers)
                     : Result<std::vector<LaneAnswer>>(status));
  };
  // Connects to all lanes before anything is sent.
  for (const ps_control::ServerMessage& message : messages) {
    const bool is_kept = connections_ == Connections::kKept && lanes_ != nullptr &&
                         lanes_->incarnation == message.welcome.incarnation &&
                         !network_.servers().IsLost(*lanes_);
    if (!is_kept) lanes_ = network_.servers().Find(static_cast<size_t>(message.server));
    if (lanes_ == nullptr) return FailToConnect(request, message.server);
    if (lanes_->layout.lanes != message.welcome.lanes ||
        lanes_->layout.servers != message.welcome.servers) {
      VirtualTime& time = network_.time();
      time.At(time.Between(1, 60), [request] {
        SimulatedNetwork::Finish(request, FailedPrecondition("the server has other lanes"));
      });
      return;
    }
    request->unanswered.insert(request->unanswered.end(), lanes_->lanes.size(), lanes_);
  }
  request->answers.resize(request->unanswered.size());
  std::optional<Time> deadline;
  if (timeout.has_value()) deadline = network_.time().now() + *timeout;
  network_.Watch(request, deadline);
  const std::vector<ServerPtr> to = request->unanswered;
  size_t place = 0;
  for (const ps_control::ServerMessage& message : messages) {
    for (size_t lane = 0; lane < message.metas.size(); ++lane, ++place) {
      network_.Send(request, place, to[place], lane, type, message.metas[lane]);
    }
  }
}

void SimulatedChannel::Reset() {
  control_ = lanes_ = nullptr;
  const SimulatedNetwork::RequestPtr request = request_.lock();
  if (request == nullptr || !request->is_open) return;
  // The answer may arrive before the thread that waits for it checks.
  VirtualTime& time = network_.time();
  time.At(time.Between(1, 300),
          [request] { SimulatedNetwork::Finish(request, Cancelled("the channel was reset")); });
}

}  // namespace edl::master
