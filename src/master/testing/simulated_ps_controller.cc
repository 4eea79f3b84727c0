#include "master/testing/simulated_ps_controller.h"

#include <algorithm>
#include <utility>

#include "checkpoint/checkpoint_folder.h"

namespace edl::master {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ServerPtr = SimulatedServers::ServerPtr;

constexpr milliseconds kLookEvery{500};

}  // namespace

SimulatedPsController::SimulatedPsController(const Plan& plan, Mutant mutant,
                                             SimulatedServers& servers, VirtualTime& time,
                                             SimulationResult& sums, Master master)
    : plan_(plan),
      mutant_(mutant),
      servers_(servers),
      time_(time),
      sums_(sums),
      master_(std::move(master)) {}

// Most messages come soon, and some when nobody expects them any more.
Duration SimulatedPsController::Delay() {
  return time_.Faulty() && time_.Chance() < 0.05 ? time_.Between(500, 10000) : time_.Between(1, 60);
}

Duration SimulatedPsController::DiskTime(int at_most) {
  const bool is_slow = time_.Faulty() && time_.Chance() < plan_.slow_disk;
  return is_slow ? time_.Between(5000, 60000) : time_.Between(5, at_most);
}

void SimulatedPsController::Do(const std::vector<ServerCommand>& commands) {
  const uint64_t life = master_.life();
  if (life != life_) {
    life_ = life;
    serve_.reset();
    LookAfterAll(life);
  }
  for (const ServerCommand& command : commands) {
    if (const auto* serve = std::get_if<ServeAll>(&command)) {
      serve_ = *serve;
      ++serve_number_;
      for (size_t i = 0; i < serve->incarnations.size(); ++i) LookAfter(i, life);
      continue;
    }
    time_.At(time_.Between(1, 20), [this, command, life] {
      std::visit(
          [&](const auto& some) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(some)>, ServeAll>) {
              Carry(some, life);
            }
          },
          command);
    });
  }
}

void SimulatedPsController::Answer(uint64_t life, std::function<void(Core&)> answer) {
  time_.At(time_.Between(1, 30), [this, life, answer = std::move(answer)] {
    if (master_.life() == life) master_.run(answer);
  });
}

Result<ServerPtr> SimulatedPsController::Probe(size_t index) const {
  ServerPtr server = servers_.Find(index);
  if (server == nullptr || time_.now() < server->frozen_until) {
    return Unavailable("nobody answers at the address of parameter server {}", index);
  }
  if (server->layout.servers != servers_.layout().servers) {
    return Unavailable("parameter server {} is one of {}", index, server->layout.servers);
  }
  return server;
}

void SimulatedPsController::Carry(const ProbeServer& probe, uint64_t life) {
  const Result<ServerPtr> server = Probe(static_cast<size_t>(probe.index));
  const Result<ProbeReply> reply =
      server.ok() ? Result<ProbeReply>(ProbeReply{(*server)->incarnation,
                                                  static_cast<uint32_t>((*server)->layout.lanes)})
                  : Result<ProbeReply>(server.status());
  Answer(life, [probe, reply](Core& core) { core.OnProbed(probe.number, reply); });
}

// --- many lanes ---

void SimulatedPsController::End(const AskingPtr& asking, const Status& status) {
  if (const auto done = std::exchange(asking->done, nullptr)) done(status);
}

void SimulatedPsController::OnLane(const AskingPtr& asking, const ServerPtr& server,
                                   const Status& status) {
  if (!status.ok()) return End(asking, status);
  asking->open.erase(std::ranges::find(asking->open, server));
  if (asking->open.empty()) End(asking, Ok());
}

// Who waits for a dead one notices it some time; who waits for one that hangs does not.
void SimulatedPsController::Watch(const AskingPtr& asking) {
  time_.At(seconds(1), [this, asking] {
    if (asking->done == nullptr) return;
    const bool all_live = std::ranges::none_of(
        asking->open, [this](const ServerPtr& server) { return servers_.IsLost(*server); });
    if (all_live) {
      Watch(asking);
    } else {
      End(asking, Unavailable("a parameter server does not answer"));
    }
  });
}

// --- restore ---

void SimulatedPsController::Carry(const RestoreServers& restore, uint64_t life) {
  // Whoever waits for the one before has given it up.
  if (const AskingPtr before = restoring_.lock(); before != nullptr && before->life == life) {
    End(before, Cancelled("another restore was asked for"));
  }
  auto asking = std::make_shared<Asking>();
  asking->life = life;
  restoring_ = asking;
  asking->done = [this, restore, life](const Status& status) {
    Answer(life, [this, restore, status](Core& core) { OnRestored(core, restore, status); });
  };
  std::vector<ServerPtr> servers;
  for (const RestoreServers::Server& asked : restore.servers) {
    const Result<ServerPtr> server = Probe(static_cast<size_t>(asked.index));
    if (!server.ok()) return End(asking, server.status());
    servers.push_back(*server);
    asking->open.insert(asking->open.end(), (*server)->lanes.size(), *server);
  }
  Watch(asking);
  for (const ServerPtr& server : servers) {
    for (size_t lane = 0; lane < server->lanes.size(); ++lane) {
      RestoreLane(asking, server, lane, restore);
    }
  }
}

void SimulatedPsController::RestoreLane(const AskingPtr& asking, const ServerPtr& server,
                                        size_t lane, const RestoreServers& restore) {
  servers_.AtServer(server, Delay(), [this, asking, server, lane, restore] {
    const bool is_meant =
        std::ranges::any_of(restore.servers, [&](const RestoreServers::Server& asked) {
          return asked.incarnation == server->incarnation;
        });
    if (!is_meant) {
      return OnLane(asking, server, FailedPrecondition("this is another life of the server"));
    }
    // A lane does one thing after the other, and reads to the end what it has begun with.
    const Time begin = std::max(time_.now(), server->lanes[lane]->restored_at());
    server->lanes[lane]->set_restored_at(begin + DiskTime(500));
    server->busy_until = std::max(server->busy_until, server->lanes[lane]->restored_at());
    servers_.AtServer(server, begin - time_.now(), [this, asking, server, lane, restore] {
      const Status status = Restore(*server, *server->lanes[lane], restore);
      const Duration left = server->lanes[lane]->restored_at() - time_.now();
      servers_.AtServer(server, std::max<Duration>(left, Duration::zero()),
                        [this, asking, server, status] { OnLane(asking, server, status); });
    });
  });
}

Status SimulatedPsController::Restore(const SimulatedServers::Server& server, SimulatedLane& lane,
                                      const RestoreServers& restore) {
  if (restore.checkpoint.empty()) return lane.Restore(restore.ps_epoch, {});
  if (time_.now() < server.blind_until) {
    ++sums_.blind;
    if (mutant_ == Mutant::kMissingIsDamage) return DataLoss("part-0 is missing");
    return Unavailable("part-0 is not there; the master sees the file");
  }
  const auto found = disk_.find(restore.checkpoint);
  if (found == disk_.end()) return NotFound("there is no checkpoint {}", restore.checkpoint);
  EDL_RETURN_IF_ERROR(lane.Restore(restore.ps_epoch, found->second.parts));
  if (found->second.damaged) return DataLoss("{} is damaged", restore.checkpoint);
  return Ok();
}

void SimulatedPsController::OnRestored(Core& core, const RestoreServers& restore,
                                       const Status& status) {
  time_.Note("restored for epoch {} from '{}': {}", restore.ps_epoch, restore.checkpoint,
             status.ToString());
  const size_t before = core.parameters().checkpoints().size();
  core.OnRestored(restore.number, status);
  if (core.parameters().checkpoints().size() < before) ++sums_.fallbacks;
  if (status.ok() && restore.ps_epoch > 1) ++sums_.restores;
}

// --- save ---

void SimulatedPsController::Carry(const SaveAll& save, uint64_t life) {
  auto asking = std::make_shared<Asking>();
  asking->number = save.number;
  asking->life = life;
  saving_ = asking;
  asking->done = [this, save, life, asking = asking.get()](const Status& status) {
    // Even what was given up has a folder, and parts in it.
    disk_[save.name].parts = std::move(asking->parts);
    if (status.code() == Code::kCancelled) ++sums_.cancelled;
    Answer(life, [this, save, status](Core& core) { OnSaved(core, save, status); });
  };
  std::vector<ServerPtr> servers;
  for (size_t index = 0; index < save.incarnations.size(); ++index) {
    const Result<ServerPtr> server = Probe(index);
    if (!server.ok()) return End(asking, server.status());
    if ((*server)->incarnation != save.incarnations[index]) {
      return End(asking, Aborted("parameter server {} was started anew", index));
    }
    servers.push_back(*server);
    asking->open.insert(asking->open.end(), (*server)->lanes.size(), *server);
  }
  Watch(asking);
  for (const ServerPtr& server : servers) {
    for (const auto& lane : server->lanes) {
      servers_.AtServer(server, Delay() + time_.Between(0, 1200), [this, asking, server, &lane] {
        if (asking->done == nullptr) return;  // its connection is closed
        Result<SimulatedPart> part = lane->Cut();
        if (!part.ok()) return OnLane(asking, server, part.status());
        servers_.AtServer(server, DiskTime(1500), [this, asking, server, part = std::move(*part)] {
          if (asking->done == nullptr) return;
          asking->parts.push_back(part);
          OnLane(asking, server, Ok());
        });
      });
    }
  }
}

void SimulatedPsController::OnSaved(Core& core, const SaveAll& save, const Status& status) {
  core.OnSaved(save.number, status);
  const auto& checkpoints = core.parameters().checkpoints();
  const bool committed = !checkpoints.empty() && checkpoints.back().name == save.name;
  time_.Note("saved {}: {}, {}", save.name, status.ToString(), committed ? "committed" : "void");
  if (!committed) ++(status.ok() ? sums_.voids : sums_.failed_saves);
}

void SimulatedPsController::Carry(const DropCheckpoint& drop, uint64_t) { disk_.erase(drop.name); }

void SimulatedPsController::Carry(const CancelSave& cancel, uint64_t life) {
  // It may be done before whoever waits for it looks.
  time_.At(time_.Between(1, 300), [this, cancel, life] {
    const AskingPtr asking = saving_.lock();
    if (asking == nullptr || asking->number != cancel.number || asking->life != life) return;
    End(asking, Cancelled("the save was given up"));
  });
}

void SimulatedPsController::Carry(const CollectOrphans& collect, uint64_t) {
  std::erase_if(disk_, [&](const auto& entry) {
    const auto name = checkpoint::CheckpointName::FromText(entry.first);
    const bool is_orphan = name && name->ledger == collect.ledger && name->save < collect.below &&
                           std::ranges::find(collect.keep, entry.first) == collect.keep.end();
    if (is_orphan) ++sums_.orphans;
    return is_orphan;
  });
}

// --- serve ---

void SimulatedPsController::LookAfterAll(uint64_t life) {
  time_.At(kLookEvery, [this, life] {
    if (master_.life() != life || time_.failed()) return;
    for (size_t i = 0; i < servers_.layout().servers; ++i) LookAfter(i, life);
    LookAfterAll(life);
  });
}

// Asks who the server is; tells it what it may do, if it does not know yet, and hears how it is.
void SimulatedPsController::LookAfter(size_t index, uint64_t life) {
  const Result<ServerPtr> server = Probe(index);
  if (!server.ok()) return;
  job::ServerView view{.index = static_cast<int>(index), .incarnation = (*server)->incarnation};
  Answer(life, [view](Core& core) { core.OnServerAlive(view.index, view.incarnation); });
  const bool is_served = serve_.has_value() && index < serve_->incarnations.size();
  const bool is_meant = is_served && view.incarnation == serve_->incarnations[index];
  if (is_served && !is_meant) {
    Answer(life, [view](Core& core) { core.OnServerState(view); });
    return;
  }
  if (time_.now() < (*server)->busy_until) return;
  (*server)->asked_at = time_.now();
  if (is_meant && told_[(*server)->incarnation] != serve_number_) {
    TellServe(*server);
    return;
  }
  for (const auto& lane : (*server)->lanes) view.opens_waiting += lane->opens_waiting();
  Answer(life, [view](Core& core) { core.OnServerState(view); });
}

void SimulatedPsController::TellServe(const ServerPtr& server) {
  auto asking = std::make_shared<Asking>();
  asking->open.assign(server->lanes.size(), server);
  asking->done = [this, server, number = serve_number_](const Status& status) {
    if (status.ok()) told_[server->incarnation] = number;
  };
  for (const auto& lane : server->lanes) {
    const int times = time_.Faulty() && time_.Chance() < plan_.repeat ? 2 : 1;
    for (int i = 0; i < times; ++i) {
      if (time_.Lose()) continue;
      // The connection, and with it the life that is meant, is the one that was probed.
      servers_.AtServer(server, Delay(),
                        [this, asking, server, &lane, serve = *serve_, is_first = i == 0] {
                          const Status status = lane->Serve(serve);
                          if (is_first) OnLane(asking, server, status);
                        });
    }
  }
}

// --- checks ---

bool SimulatedPsController::HasOnce(const Checkpoint& checkpoint, size_t batch) const {
  size_t buckets = 0;
  for (const SimulatedPart& part : checkpoint.parts) {
    for (const SimulatedBucket& bucket : part.buckets) {
      if (batch < bucket.size() && bucket[batch] == 1) ++buckets;
    }
  }
  return buckets == SimulatedLane::kBuckets;
}

void SimulatedPsController::Check(Core& core, const std::string& name,
                                  const std::function<bool(int64_t, uint64_t)>& expected) {
  const Dataset* dataset = core.dispatcher().Find(Plan::kDataset);
  if (dataset == nullptr) return;
  const SimulatedBatches& batches = servers_.batches();
  const uint32_t generation = dataset->row().generation;
  for (int64_t epoch = 0; epoch < plan_.data.epochs; ++epoch) {
    for (uint64_t ordinal = 0; ordinal < batches.shards; ++ordinal) {
      if (!expected(epoch, ordinal)) continue;
      const int64_t records = dataset->records_in(ordinal);
      for (uint64_t batch = 0; static_cast<int64_t>(batch) * plan_.data.batch_size < records;
           ++batch) {
        if (HasOnce(disk_[name], batches.NumberOf(generation, epoch, ordinal, batch))) continue;
        time_.Fail(fmt::format("checkpoint {}: a bucket lacks batch {} of shard {}/{}/{}", name,
                               batch, generation, epoch, ordinal));
      }
    }
  }
}

void SimulatedPsController::CheckNewest(Core& core) {
  const auto& checkpoints = core.parameters().checkpoints();
  if (core.parameters().IsDurable() && !checkpoints.empty()) durable_ = checkpoints.back().name;
  if (checkpoints.empty() || checkpoints.back().name == newest_) return;
  newest_ = checkpoints.back().name;
  if (known_.insert(newest_).second) OnNewCheckpoint(newest_);
  const Dataset* dataset = core.dispatcher().Find(Plan::kDataset);
  if (dataset == nullptr) return;
  const checkpoint::ShardSet& covered = checkpoints.back().covered;
  Check(core, newest_, [&](int64_t epoch, uint64_t ordinal) {
    return covered.Contains(dataset->id().value(), dataset->row().generation, epoch, ordinal);
  });
}

void SimulatedPsController::OnNewCheckpoint(const std::string& name) {
  ++sums_.saves;
  // Never both of those that may be used.
  const bool damaged = time_.Faulty() && good_since_damage_ >= 1 && time_.Chance() < plan_.damage;
  disk_[name].damaged = damaged;
  good_since_damage_ = damaged ? 0 : good_since_damage_ + 1;
  if (damaged) time_.Note("{} is damaged", name);
}

void SimulatedPsController::CheckAll(Core& core) {
  // One that is found damaged once the job has ended is too late for it.
  if (durable_.empty()) return time_.Fail("the job succeeded, and not all of it was saved");
  Check(core, durable_, [](int64_t, uint64_t) { return true; });
}

}  // namespace edl::master
