#include "master/testing/simulated_trainer.h"

#include <algorithm>
#include <utility>

namespace edl::master {
namespace {

using std::chrono::milliseconds;
using Pushed = wire::PushAnswer::Outcome;

constexpr milliseconds kResend{1500};

}  // namespace

void SimulatedTrainer::Train(Worker worker, const LeasedShard& shard, OnTrained on_trained) {
  auto training = std::make_shared<Training>();
  training->worker = std::move(worker);
  training->shard = shard;
  training->key = {.ledger = shard.ledger,
                   .dataset = static_cast<uint64_t>(shard.dataset_id.value()),
                   .generation = shard.generation,
                   .epoch = static_cast<uint32_t>(shard.key.epoch),
                   .ordinal = shard.key.ordinal};
  training->batches = static_cast<uint64_t>((shard.end - shard.start + plan_.data.batch_size - 1) /
                                            plan_.data.batch_size);
  training->on_trained = std::move(on_trained);
  Tick(training);
  Begin(training);
}

void SimulatedTrainer::End(const TrainingPtr& training, std::optional<uint64_t> epoch) {
  ++training->attempt;
  if (epoch.has_value() && time_.Faulty() && time_.Chance() < plan_.repeat) Replay(training);
  if (const auto done = std::exchange(training->on_trained, nullptr)) done(epoch);
}

void SimulatedTrainer::Begin(const TrainingPtr& training) {
  if (training->on_trained == nullptr) return;
  if (!training->worker.holds(training->shard.lease)) return End(training, std::nullopt);
  ++training->attempt;
  training->layout = servers_.layout();
  training->links.clear();
  training->sent = 0;
  training->computing = false;
  for (size_t server = 0; server < training->layout.servers; ++server) {
    for (size_t lane = 0; lane < training->layout.lanes; ++lane) {
      training->links.push_back({.server = server, .lane = lane});
    }
  }
  for (size_t link = 0; link < training->links.size(); ++link) Resend(training, link);
}

// What was not answered for a while is sent again, to whoever answers then.
void SimulatedTrainer::Tick(const TrainingPtr& training) {
  training->worker.later(kResend, [this, training, attempt = training->attempt] {
    if (training->on_trained == nullptr) return;
    if (!training->worker.holds(training->shard.lease)) return End(training, std::nullopt);
    Tick(training);
    if (training->attempt != attempt) return;
    if (training->layout != servers_.layout()) return Begin(training);
    for (size_t link = 0; link < training->links.size(); ++link) Resend(training, link);
  });
}

void SimulatedTrainer::Resend(const TrainingPtr& training, size_t number) {
  Link& link = training->links[number];
  const ServerPtr answers = servers_.Find(link.server);
  // A connection lasts as long as the process at its other end.
  const bool is_dead = link.to == nullptr || !link.to->alive || time_.Chance() < 0.2;
  if (is_dead) link.to = answers;
  if (!link.opened.has_value()) return SendOpen(training, number);
  for (uint64_t batch = link.acknowledged; batch < training->sent; ++batch) {
    SendPush(training, number, batch);
  }
}

void SimulatedTrainer::Replay(const TrainingPtr& training) {
  const Duration later = time_.Between(100, 30000);
  for (const Link& link : training->links) {
    if (link.to == nullptr) continue;
    servers_.AtServer(link.to, later, [training, to = link.to, lane = link.lane] {
      const uint64_t lease = training->shard.lease.value();
      to->lanes[lane]->Open(lease, training->key, [](const Result<wire::OpenAnswer>&) {});
      for (uint64_t batch = 0; batch < training->batches; ++batch) {
        to->lanes[lane]->Push(lease, training->key, batch, [](const wire::PushAnswer&) {});
      }
    });
  }
}

void SimulatedTrainer::Send(const TrainingPtr& training, size_t number,
                            const std::function<void(SimulatedLane&)>& handle) {
  Link& link = training->links[number];
  // A lane that is another than the caller believes is not spoken to.
  if (link.to == nullptr || link.to->layout != training->layout) return;
  const auto deliver = [this, to = link.to, lane = link.lane, handle](Duration later) {
    servers_.AtServer(to, later, [to, lane, handle] { handle(*to->lanes[lane]); });
  };
  const Duration delay = time_.Between(1, 60);
  if (!time_.Lose()) {
    link.last = std::max(link.last, time_.now() + delay);
    deliver(link.last - time_.now());
  }
  if (time_.Faulty() && time_.Chance() < plan_.repeat) deliver(time_.Between(1, 20000));
}

void SimulatedTrainer::Answer(const TrainingPtr& training, uint64_t attempt,
                              std::function<void()> handle) {
  if (time_.Lose()) return;
  training->worker.later(time_.Between(1, 40), [training, attempt, handle = std::move(handle)] {
    if (training->attempt == attempt) handle();
  });
}

void SimulatedTrainer::SendOpen(const TrainingPtr& training, size_t link) {
  Send(training, link, [this, training, link, attempt = training->attempt](SimulatedLane& lane) {
    lane.Open(training->shard.lease.value(), training->key,
              [this, training, link, attempt](const Result<wire::OpenAnswer>& answer) {
                Answer(training, attempt,
                       [this, training, link, answer] { OnOpened(training, link, answer); });
              });
  });
}

void SimulatedTrainer::OnOpened(const TrainingPtr& training, size_t link,
                                const Result<wire::OpenAnswer>& answer) {
  if (!answer.ok()) return End(training, std::nullopt);
  if (training->links[link].opened.has_value()) return;  // said twice
  training->links[link].opened = *answer;
  const bool all = std::ranges::all_of(training->links,
                                       [](const Link& some) { return some.opened.has_value(); });
  if (!all) return;
  uint64_t mark = training->batches;
  for (const Link& some : training->links) mark = std::min(mark, some.opened->mark);
  for (Link& some : training->links) some.acknowledged = mark;
  training->sent = mark;
  PushMore(training);
}

void SimulatedTrainer::PushMore(const TrainingPtr& training) {
  uint64_t acknowledged = training->batches;
  uint64_t epoch = UINT64_MAX;
  for (const Link& link : training->links) {
    acknowledged = std::min(acknowledged, link.acknowledged);
    epoch = std::min(epoch, link.opened->ps_epoch);
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
    for (size_t link = 0; link < training->links.size(); ++link) SendPush(training, link, batch);
    PushMore(training);
  });
}

void SimulatedTrainer::SendPush(const TrainingPtr& training, size_t link, uint64_t batch) {
  Send(training, link,
       [this, training, link, batch, attempt = training->attempt](SimulatedLane& lane) {
         lane.Push(training->shard.lease.value(), training->key, batch,
                   [this, training, link, batch, attempt](const wire::PushAnswer& answer) {
                     Answer(training, attempt, [this, training, link, batch, answer] {
                       OnPushed(training, link, batch, answer);
                     });
                   });
       });
}

void SimulatedTrainer::OnPushed(const TrainingPtr& training, size_t number, uint64_t batch,
                                const wire::PushAnswer& answer) {
  Link& link = training->links[number];
  switch (answer.outcome) {
    case Pushed::kApplied:
    case Pushed::kAlready:
      link.answered |= uint64_t{1} << batch;
      while ((link.answered >> link.acknowledged & 1) != 0) ++link.acknowledged;
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
