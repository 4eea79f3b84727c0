#include "simulation/simulated_servers.h"

#include <algorithm>
#include <utility>

namespace edl::master {
namespace {

using std::chrono::seconds;

// After this time keepalive and user timeout close connections to a lost machine (wire/socket.cc).
constexpr seconds kKeepalive{10};
// A server that the master has not contacted for this long fences itself (src/ps).
constexpr seconds kFence{10};

SimulatedBatches BatchesOf(const DatasetSpec& data) {
  const int64_t per_shard = data.batch_size * data.batches_per_shard;
  return {.per_shard = static_cast<size_t>(data.batches_per_shard),
          .shards = static_cast<size_t>((data.size + per_shard - 1) / per_shard),
          .epochs = static_cast<size_t>(data.epochs)};
}

}  // namespace

SimulatedServers::SimulatedServers(const Plan& plan, Mutant mutant, VirtualTime& time,
                                   SimulationResult& sums, Environment environment)
    : plan_(plan),
      mutant_(mutant),
      time_(time),
      sums_(sums),
      environment_(std::move(environment)),
      batches_(BatchesOf(plan.data)),
      layout_{static_cast<size_t>(plan.servers), static_cast<size_t>(plan.lanes)} {}

void SimulatedServers::Launch(const LaunchCommand& command) {
  const bool known = std::ranges::any_of(
      servers_, [&](const ServerPtr& server) { return server->name == command.name; });
  if (known) return;
  Begin(command.name, command.index);
  environment_.report(
      {.name = command.name, .kind = job::ReplicaEvent::Kind::kRunning, .process_id = 1});
}

void SimulatedServers::Begin(const std::string& name, int index) {
  auto server = std::make_shared<Server>();
  server->name = name;
  server->index = index;
  server->incarnation = last_incarnation_ = last_incarnation_.Next();
  server->layout = layout_;
  server->answers_from = time_.now() + time_.Between(20, 1500);
  server->asked_at = time_.now();
  if (time_.Faulty() && time_.Chance() < plan_.blind) {
    server->blind_until = time_.now() + time_.Between(500, 20000);
  }
  const size_t lanes = layout_.servers * layout_.lanes;
  for (size_t lane = 0; lane < layout_.lanes; ++lane) {
    // A slot that the job no longer has may still be launched once.
    const size_t place = std::min(static_cast<size_t>(index) * layout_.lanes + lane, lanes - 1);
    server->lanes.push_back(
        std::make_unique<SimulatedLane>(place, lanes, batches_, mutant_, time_, sums_));
  }
  servers_.push_back(server);
  time_.Note("{} begins: incarnation {}, {} lanes", name, server->incarnation, layout_.lanes);
  NextFaults(server);
}

void SimulatedServers::Stop(const std::string& name) {
  for (const ServerPtr& server : servers_) {
    if (server->name != name || server->is_over || !server->can_stop) continue;
    Die(server);
    return End(server, time_.Between(1, 100));
  }
}

std::vector<std::string> SimulatedServers::Running() const {
  std::vector<std::string> names;
  for (const ServerPtr& server : servers_) {
    if (!server->is_over) names.push_back(server->name);
  }
  return names;
}

void SimulatedServers::NextFaults(const ServerPtr& server) {
  time_.At(seconds(1), [this, server] {
    if (!server->alive || server->is_over || !time_.Faulty()) return;
    if (time_.Chance() < plan_.kill_rate) {
      ++sums_.server_kills;
      Kill(server);
      return;
    }
    if (time_.Chance() < plan_.freeze_rate) {
      ++sums_.freezes;
      Freeze(server);
    }
    NextFaults(server);
  });
}

// Mostly for some seconds, sometimes for a minute, and sometimes for ever. Nothing reports it.
void SimulatedServers::Freeze(const ServerPtr& server) {
  const double way = time_.Chance();
  if (way > 0.9) {
    ++sums_.hangs;
    server->frozen_until = Time::max();
  } else {
    const Time thaws = time_.now() + time_.Between(500, way > 0.7 ? 60000 : 20000);
    server->frozen_until = std::max(server->frozen_until, thaws);
  }
  time_.Note("{} freezes", server->name);
}

// In one of five ways:
// - it is dead, and the backend reports it at once;
// - it is dead, and the backend reports it late;
// - it is a zombie: the backend reports it dead, and it still answers, perhaps until the job ends;
// - it vanishes with its machine: neither the backend nor its connections notice for a while;
// - it is restarted in place, which the backend does not notice.
void SimulatedServers::Kill(const ServerPtr& server) {
  const double way = time_.Chance();
  if (way < plan_.zombie) {
    time_.Note("{} is a zombie", server->name);
    End(server, time_.Between(1, 100));
    if (time_.Chance() < 0.5) {
      ++sums_.zombies;
    } else {
      time_.At(time_.Between(100, 20000), [this, server] { Die(server); });
    }
    return;
  }
  if (time_.Chance() < plan_.vanish) {
    ++sums_.vanished;
    server->vanished = true;
    Die(server);
    // A cluster notices a lost machine itself, and cannot stop its pods. A local process can be
    // stopped.
    server->can_stop = time_.Chance() < 0.5;
    if (!server->can_stop) End(server, time_.Between(30000, 50000));
    return;
  }
  Die(server);
  if (way > 0.9) {
    server->is_over = true;
    Begin(server->name, server->index);
    return;
  }
  End(server, way > 0.75 ? time_.Between(500, 8000) : time_.Between(1, 100));
}

void SimulatedServers::Die(const ServerPtr& server) {
  if (!server->alive) return;
  time_.Note("{} dies", server->name);
  server->alive = false;
  server->died_at = time_.now();
  // A process that never answered did not take over its slot's address.
  if (time_.now() < server->answers_from) server->answers_from = Time::max();
}

void SimulatedServers::End(const ServerPtr& server, Duration noticed_after) {
  time_.At(noticed_after, [this, server] {
    if (server->is_over) return;
    server->is_over = true;
    environment_.report({.name = server->name,
                         .kind = job::ReplicaEvent::Kind::kExited,
                         .cause = {.kind = job::ExitCause::Kind::kKilled, .message = "simulated"}});
  });
}

void SimulatedServers::BeginMoves() {
  time_.At(seconds(1), [this] {
    if (!time_.Faulty()) return;
    if (time_.Chance() < plan_.move_rate) Move();
    BeginMoves();
  });
}

void SimulatedServers::Move() {
  ++sums_.moves;
  // Only --resume changes the number of lanes.
  const bool resumes = time_.Chance() < 0.6;
  if (resumes) {
    layout_.lanes = static_cast<size_t>(time_.Pick(1, 3));
    layout_.servers = static_cast<size_t>(time_.Pick(1, 3));
  }
  time_.Note("buckets move to {} servers with {} lanes", layout_.servers, layout_.lanes);
  const std::vector<ServerPtr> all = servers_;
  for (const ServerPtr& server : all) {
    if (!server->is_over) Kill(server);
  }
  if (resumes) environment_.resume_with(layout_);
}

bool SimulatedServers::IsLost(const Server& server) const {
  if (server.alive) return false;
  return !server.vanished || time_.now() - server.died_at >= kKeepalive;
}

bool SimulatedServers::IsFenced(const Server& server) const {
  return plan_.fences && time_.now() - server.asked_at > kFence;
}

SimulatedServers::ServerPtr SimulatedServers::Find(size_t index) const {
  const auto newest =
      std::find_if(servers_.rbegin(), servers_.rend(), [&](const ServerPtr& server) {
        return static_cast<size_t>(server->index) == index && server->answers_from <= time_.now();
      });
  return newest != servers_.rend() && (*newest)->alive ? *newest : nullptr;
}

void SimulatedServers::AtServer(const ServerPtr& server, Duration later,
                                std::function<void()> run) {
  time_.At(later, [this, server, run = std::move(run)] {
    if (!server->alive || time_.failed()) return;
    if (server->frozen_until == Time::max()) return;
    if (time_.now() < server->frozen_until) {
      AtServer(server, server->frozen_until - time_.now(), run);
      return;
    }
    run();
  });
}

}  // namespace edl::master
