#include "ps_client/own_shard.h"

#include <random>

namespace edl::ps_client {

using wire::PushOutcome;

OwnShard::OwnShard() {
  std::random_device random;
  key_.ledger = job::LedgerId((uint64_t{random()} << 32) | random());
}

Result<PushOutcome> OwnShard::Settle(uint64_t batch, PushOutcome outcome) {
  if (stale_from_.has_value() && batch >= *stale_from_) {
    // It was sent before the client knew that an earlier batch is stale.
    if (outcome == PushOutcome::kAhead) return PushOutcome::kStale;
    if (batch == *stale_from_ && outcome != PushOutcome::kStale) stale_from_.reset();
  }
  switch (outcome) {
    case PushOutcome::kApplied:
    case PushOutcome::kAlready:
      return PushOutcome::kApplied;
    case PushOutcome::kStale:
      next_ = batch;
      stale_from_ = batch;
      return outcome;
    case PushOutcome::kAhead:
    case PushOutcome::kNotOpen:
    case PushOutcome::kFenced:
      break;
  }
  Break();
  return Aborted(
      "a parameter server was restarted and lacks batches of this client: restore a checkpoint, or "
      "continue with the parameters that the servers have");
}

}  // namespace edl::ps_client
