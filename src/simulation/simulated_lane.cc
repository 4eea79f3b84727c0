#include "simulation/simulated_lane.h"

#include <algorithm>
#include <utility>

namespace edl::master {
namespace {

// Share of pushes that are too old for a synchronous round.
constexpr double kStaleRate = 0.004;

size_t FirstOf(size_t place, size_t lanes) {
  return (place * SimulatedLane::kBuckets + lanes - 1) / lanes;
}

}  // namespace

SimulatedLane::SimulatedLane(size_t place, size_t lanes, const SimulatedBatches& batches,
                             Mutant mutant, VirtualTime& time, SimulationResult& sums)
    : first_(FirstOf(place, lanes)),
      end_(FirstOf(place + 1, lanes)),
      batches_(batches),
      mutant_(mutant),
      time_(time),
      sums_(sums) {
  Clear();
}

void SimulatedLane::Clear() {
  watermarks_ = std::make_unique<ps::Watermarks>(static_cast<wire::Bucket>(first_), end_);
  buckets_.assign(end_ - first_, {});
  empty_ = true;
}

void SimulatedLane::Open(LeaseId lease, const wire::ShardKey& shard,
                         std::function<void(Result<wire::OpenAnswer>)> answer) {
  if (!serves_ || !may_push_) {
    ++waiting_opens_;
    waiting_.emplace_back([this, lease, shard, answer = std::move(answer)] {
      --waiting_opens_;
      Open(lease, shard, answer);
    });
    return;
  }
  empty_ = false;
  const Result<uint64_t> watermark = watermarks_->Open(lease, shard);
  if (watermark.ok()) {
    answer(wire::OpenAnswer{.watermark = *watermark, .ps_epoch = ps_epoch_});
  } else {
    answer(watermark.status());
  }
}

void SimulatedLane::Push(LeaseId lease, const wire::ShardKey& shard, uint64_t batch,
                         std::function<void(wire::PushAnswer)> answer) {
  if (!serves_) {
    waiting_.emplace_back([this, lease, shard, batch, answer = std::move(answer)] {
      Push(lease, shard, batch, answer);
    });
    return;
  }
  if (time_.Chance() < kStaleRate) {
    const ps::Watermarks::BatchCheck seen = watermarks_->Peek(lease, shard, batch);
    if (seen.outcome == ps::Watermarks::Outcome::kApplied) {
      ++sums_.stale;
      answer({.outcome = ps::Watermarks::Outcome::kStale, .watermark = seen.watermark});
      return;
    }
  }
  ps::Watermarks::BatchCheck check = watermarks_->Count(lease, shard, batch);
  if (mutant_ == Mutant::kNoWatermarks && check.outcome == ps::Watermarks::Outcome::kAlready) {
    check.outcome = ps::Watermarks::Outcome::kApplied;
  }
  if (check.outcome == ps::Watermarks::Outcome::kApplied) Apply(shard, batch, check);
  answer({.outcome = check.outcome, .watermark = check.watermark});
}

void SimulatedLane::Apply(const wire::ShardKey& shard, uint64_t batch,
                          const ps::Watermarks::BatchCheck& check) {
  if (check.lacked.has_value()) ++sums_.partly_applied;
  const size_t number = batches_.NumberOf(shard.generation, shard.epoch, shard.ordinal, batch);
  for (size_t i = 0; i < buckets_.size(); ++i) {
    if (check.lacked.has_value() && !(*check.lacked)[i]) continue;
    SimulatedBucket& bucket = buckets_[i];
    if (bucket.size() <= number) bucket.resize(number + 1);
    if (++bucket[number] > 1) {
      time_.Fail(fmt::format("batch {} of shard {}/{}/{} is in bucket {} twice", batch,
                             shard.generation, shard.epoch, shard.ordinal, first_ + i));
    }
  }
}

Status SimulatedLane::Restore(PsEpoch ps_epoch, const std::vector<SimulatedPart>& parts) {
  if (ps_epoch < restore_epoch_) {
    return FailedPrecondition("a restore for epoch {}, and epoch {} has begun", ps_epoch,
                              restore_epoch_);
  }
  restore_epoch_ = ps_epoch;
  if (!serves_) Clear();
  if (!empty_) return FailedPrecondition("this lane has parameters already");
  for (const SimulatedPart& part : parts) Take(part);
  watermarks_->Settle();
  return Ok();
}

void SimulatedLane::Take(const SimulatedPart& part) {
  for (size_t i = 0; i < part.buckets.size(); ++i) {
    const size_t bucket = part.first + i;
    if (bucket >= first_ && bucket < end_) buckets_[bucket - first_] = part.buckets[i];
  }
  empty_ = false;
  if (mutant_ == Mutant::kRestoresNoMarks) return;
  watermarks_->RaiseFloor(part.floor);
  for (const ps::Watermarks::Entry& entry : part.watermarks) watermarks_->Restore(entry);
}

Status SimulatedLane::Serve(const wire::Serve& serve) {
  if (!serves_ && serve.ps_epoch < restore_epoch_) {
    return FailedPrecondition("epoch {} is over: the server was restored for epoch {}",
                              serve.ps_epoch, restore_epoch_);
  }
  EDL_ASSIGN_OR_RETURN(const checkpoint::ShardSet covered,
                       checkpoint::ShardSet::FromJson(serve.covered));
  if (mutant_ == Mutant::kDropsUnfenced) {
    DropUnfenced(covered);
  } else {
    watermarks_->RaiseFloor(serve.floor);
    watermarks_->Drop(covered);
  }
  ps_epoch_ = std::max(ps_epoch_, serve.ps_epoch);
  serves_ = true;
  may_push_ = may_push_ || serve.may_push;
  const auto waiting = std::exchange(waiting_, {});
  for (const auto& handle : waiting) handle();
  return Ok();
}

void SimulatedLane::DropUnfenced(const checkpoint::ShardSet& covered) {
  const std::vector<ps::Watermarks::Entry> entries = watermarks_->Entries();
  const LeaseId floor = watermarks_->floor();
  watermarks_ = std::make_unique<ps::Watermarks>(static_cast<wire::Bucket>(first_), end_);
  watermarks_->RaiseFloor(floor);
  for (const ps::Watermarks::Entry& entry : entries) {
    if (!covered.Contains(entry.shard.dataset, entry.shard.generation, entry.shard.epoch,
                          entry.shard.ordinal)) {
      watermarks_->Restore(entry);
    }
  }
  watermarks_->Settle();
}

SimulatedPart SimulatedLane::Content() const {
  return {.first = first_,
          .buckets = buckets_,
          .floor = watermarks_->floor(),
          .watermarks = watermarks_->Entries()};
}

Result<SimulatedPart> SimulatedLane::Cut() {
  if (!serves_) return FailedPrecondition("this server has not been restored yet");
  if (mutant_ != Mutant::kCutsEarly) return Content();
  // What was there at the last cut: long before the done ranges were taken.
  SimulatedPart before = std::exchange(before_, Content());
  return before.buckets.empty() ? before_ : before;
}

}  // namespace edl::master
