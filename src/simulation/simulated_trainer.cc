#include "simulation/simulated_trainer.h"

#include <algorithm>
#include <utility>

namespace edl::master {
namespace {

using std::chrono::milliseconds;
using Pushed = wire::PushOutcome;

// How often a worker checks its connections.
constexpr milliseconds kLook{300};
// After this silence of a server that owes an answer, the worker connects to it again (ps_client).
constexpr milliseconds kSilence{10000};
constexpr milliseconds kFirstBackoff{100};
constexpr milliseconds kMostBackoff{2000};

}  // namespace

void SimulatedTrainer::Train(Worker worker, const LeasedShard& shard, OnTrained on_trained) {
  auto training = std::make_shared<Training>();
  training->worker = std::move(worker);
  training->shard = shard;
  training->key = {.ledger = shard.ledger,
                   .dataset = shard.dataset_id,
                   .generation = shard.generation,
                   .epoch = static_cast<uint32_t>(shard.key.epoch),
                   .ordinal = shard.key.ordinal};
  training->batches = static_cast<uint64_t>((shard.end - shard.start + plan_.data.batch_size - 1) /
                                            plan_.data.batch_size);
  training->on_trained = std::move(on_trained);
  Connections& connections = *training->worker.connections;
  if (connections.lanes.empty()) {
    connections.layout = servers_.layout();
    connections.lanes.resize(connections.layout.servers * connections.layout.lanes);
  }
  Tick(training);
  Begin(training);
}

void SimulatedTrainer::End(const TrainingPtr& training, std::optional<PsEpoch> epoch) {
  ++training->attempt;
  if (epoch.has_value() && time_.Faulty() && time_.Chance() < plan_.repeat) Replay(training);
  if (const auto done = std::exchange(training->on_trained, nullptr)) done(epoch);
}

void SimulatedTrainer::Begin(const TrainingPtr& training) {
  if (training->on_trained == nullptr) return;
  if (!training->worker.holds(training->shard.lease)) return End(training, std::nullopt);
  ++training->attempt;
  training->talks.assign(training->worker.connections->lanes.size(), {});
  training->sent = 0;
  training->computing = false;
  for (size_t place = 0; place < training->talks.size(); ++place) {
    training->connection(place).heard_at = time_.now();
    if (training->connection(place).to == nullptr) {
      Reconnect(training, place);
    } else {
      SendOpen(training, place);
    }
  }
}

void SimulatedTrainer::Tick(const TrainingPtr& training) {
  training->worker.later(kLook, [this, training] {
    if (training->on_trained == nullptr) return;
    if (!training->worker.holds(training->shard.lease)) return End(training, std::nullopt);
    for (size_t place = 0; place < training->talks.size(); ++place) {
      Connection& connection = training->connection(place);
      if (connection.to != nullptr && IsOver(training, place)) Drop(connection);
      if (connection.to == nullptr) Reconnect(training, place);
    }
    Tick(training);
  });
}

bool SimulatedTrainer::IsOver(const TrainingPtr& training, size_t place) {
  Connection& connection = training->connection(place);
  const SimulatedServers::Server& server = *connection.to;
  const Time now = time_.now();
  if (connection.lost_at && *connection.lost_at <= now) return true;
  if (servers_.IsLost(server)) return true;
  if (servers_.IsFenced(server) && server.alive && now >= server.frozen_until) {
    ++sums_.fenced;
    return true;
  }
  const Talk& talk = training->talks[place];
  const bool owes = !talk.opened.has_value() || talk.acknowledged < training->sent;
  if (!owes) connection.heard_at = now;
  if (now - connection.heard_at < kSilence) return false;
  connection.heard_at = now;
  const ServerPtr answers = servers_.Find(place / training->worker.connections->layout.lanes);
  return answers != connection.to || now < server.frozen_until;
}

void SimulatedTrainer::Drop(Connection& connection) {
  connection.to = nullptr;
  connection.lost_at.reset();
  connection.dial_at = time_.now() + connection.backoff;
  connection.backoff = std::min(2 * connection.backoff, kMostBackoff);
}

void SimulatedTrainer::Reconnect(const TrainingPtr& training, size_t place) {
  Connection& connection = training->connection(place);
  if (time_.now() < connection.dial_at) return;
  const SimulatedServers::Layout& layout = training->worker.connections->layout;
  const ServerPtr server = servers_.Find(place / layout.lanes);
  // With another layout, this is not the lane that the worker means.
  if (server == nullptr || server->layout != layout) return;
  connection.to = server;
  connection.number = ++last_connection_;
  connection.last = connection.heard_at = time_.now();
  connection.lost_at.reset();
  SendUnanswered(training, place);
}

void SimulatedTrainer::SendUnanswered(const TrainingPtr& training, size_t place) {
  const Talk& talk = training->talks[place];
  if (!talk.opened.has_value()) return SendOpen(training, place);
  for (uint64_t batch = talk.acknowledged; batch < training->sent; ++batch) {
    SendPush(training, place, batch);
  }
}

void SimulatedTrainer::Replay(const TrainingPtr& training) {
  const Duration later = time_.Between(100, 30000);
  const size_t lanes = training->worker.connections->layout.lanes;
  for (size_t place = 0; place < training->talks.size(); ++place) {
    const ServerPtr to = training->connection(place).to;
    if (to == nullptr) continue;
    servers_.AtServer(to, later, [training, to, lane = place % lanes] {
      const LeaseId lease = training->shard.lease;
      to->lanes[lane]->Open(lease, training->key, [](const Result<wire::OpenAnswer>&) {});
      for (uint64_t batch = 0; batch < training->batches; ++batch) {
        to->lanes[lane]->Push(lease, training->key, batch, [](const wire::PushAnswer&) {});
      }
    });
  }
}

void SimulatedTrainer::Break(Connection& connection) {
  if (connection.lost_at.has_value()) return;
  const bool is_silent = time_.Chance() < 0.2;
  connection.lost_at =
      time_.now() + (is_silent ? time_.Between(9000, 11000) : time_.Between(1, 60));
}

void SimulatedTrainer::Send(const TrainingPtr& training, size_t place,
                            const std::function<void(SimulatedLane&)>& handle) {
  Connection& connection = training->connection(place);
  if (connection.to == nullptr || connection.lost_at.has_value()) return;
  const size_t lane = place % training->worker.connections->layout.lanes;
  const auto deliver = [this, training, place, number = connection.number, to = connection.to, lane,
                        handle](Duration later) {
    servers_.AtServer(to, later, [this, training, place, number, to, lane, handle] {
      if (!servers_.IsFenced(*to)) return handle(*to->lanes[lane]);
      // The lane closes the connection.
      Connection& asked = training->connection(place);
      if (asked.number == number && !asked.lost_at.has_value()) asked.lost_at = time_.now();
    });
  };
  if (time_.Lose()) return Break(connection);
  connection.last = std::max(connection.last, time_.now() + time_.Between(1, 60));
  deliver(connection.last - time_.now());
  if (time_.Faulty() && time_.Chance() < plan_.repeat) deliver(time_.Between(1, 20000));
}

void SimulatedTrainer::Answer(const TrainingPtr& training, size_t place, uint64_t connection,
                              uint64_t attempt, std::function<void()> handle) {
  Connection& now = training->connection(place);
  if (now.number != connection || now.to == nullptr || now.lost_at.has_value()) return;
  if (time_.Lose()) return Break(now);
  training->worker.later(time_.Between(1, 40),
                         [this, training, place, connection, attempt, handle = std::move(handle)] {
                           Connection& then = training->connection(place);
                           if (then.number != connection || then.to == nullptr) return;
                           then.heard_at = time_.now();
                           if (training->attempt == attempt) handle();
                         });
}

void SimulatedTrainer::SendOpen(const TrainingPtr& training, size_t place) {
  const uint64_t connection = training->connection(place).number;
  Send(training, place,
       [this, training, place, connection, attempt = training->attempt](SimulatedLane& lane) {
         lane.Open(
             training->shard.lease, training->key,
             [this, training, place, connection, attempt](const Result<wire::OpenAnswer>& answer) {
               Answer(training, place, connection, attempt,
                      [this, training, place, answer] { OnOpened(training, place, answer); });
             });
       });
}

void SimulatedTrainer::OnOpened(const TrainingPtr& training, size_t place,
                                const Result<wire::OpenAnswer>& answer) {
  if (!answer.ok()) return End(training, std::nullopt);
  Talk& talk = training->talks[place];
  if (talk.opened.has_value()) return;  // a repeated answer
  // The server has an older epoch than the worker: connects again to the address of the slot.
  const bool is_old = answer->ps_epoch < training->worker.ps_epoch();
  if (is_old && mutant_ != Mutant::kKeepsOldLinks) {
    ++sums_.dropped_links;
    return Drop(training->connection(place));
  }
  training->connection(place).backoff = kFirstBackoff;
  talk.opened = *answer;
  const bool all = std::ranges::all_of(training->talks,
                                       [](const Talk& some) { return some.opened.has_value(); });
  if (!all) return;
  uint64_t watermark = training->batches;
  for (const Talk& some : training->talks) watermark = std::min(watermark, some.opened->watermark);
  for (Talk& some : training->talks) some.acknowledged = watermark;
  training->sent = watermark;
  PushMore(training);
}

void SimulatedTrainer::PushMore(const TrainingPtr& training) {
  uint64_t acknowledged = training->batches;
  PsEpoch epoch(UINT64_MAX);
  for (const Talk& talk : training->talks) {
    acknowledged = std::min(acknowledged, talk.acknowledged);
    epoch = std::min(epoch, talk.opened->ps_epoch);
  }
  if (acknowledged == training->batches) return End(training, epoch);
  const bool may_send = training->sent < training->batches &&
                        training->sent < acknowledged + static_cast<uint64_t>(plan_.depth);
  if (training->computing || !may_send) return;
  training->computing = true;
  training->worker.later(time_.Between(5, 900), [this, training, attempt = training->attempt] {
    if (training->attempt != attempt) return;
    training->computing = false;
    const uint64_t batch = training->sent++;
    for (size_t place = 0; place < training->talks.size(); ++place) {
      SendPush(training, place, batch);
    }
    PushMore(training);
  });
}

void SimulatedTrainer::SendPush(const TrainingPtr& training, size_t place, uint64_t batch) {
  const uint64_t connection = training->connection(place).number;
  Send(
      training, place,
      [this, training, place, batch, connection, attempt = training->attempt](SimulatedLane& lane) {
        lane.Push(
            training->shard.lease, training->key, batch,
            [this, training, place, batch, connection, attempt](const wire::PushAnswer& answer) {
              Answer(training, place, connection, attempt, [this, training, place, batch, answer] {
                OnPushed(training, place, batch, answer);
              });
            });
      });
}

void SimulatedTrainer::OnPushed(const TrainingPtr& training, size_t place, uint64_t batch,
                                const wire::PushAnswer& answer) {
  Talk& talk = training->talks[place];
  switch (answer.outcome) {
    case Pushed::kApplied:
    case Pushed::kAlready:
      talk.answered |= uint64_t{1} << batch;
      while ((talk.answered >> talk.acknowledged & 1) != 0) ++talk.acknowledged;
      PushMore(training);
      return;
    case Pushed::kStale:
    case Pushed::kAhead:
    case Pushed::kNotOpen:
      Begin(training);
      return;
    case Pushed::kFenced:
      End(training, std::nullopt);
      return;
  }
}

}  // namespace edl::master
