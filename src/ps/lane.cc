#include "ps/lane.h"

#include <cmath>
#include <string_view>

#include "base/check.h"
#include "wire/frame.h"

namespace edl::ps {
namespace {

// The table or tensor with that index in the declaration of a connection.
template <typename Parameter>
Result<Parameter*> At(const std::vector<Parameter*>& declared, uint32_t index,
                      std::string_view kind) {
  if (index < declared.size()) return declared[index];
  return InvalidArgument("{} {} was not declared on this connection, which declared {}", kind,
                         index, declared.size());
}

Status CheckRate(float rate, const Optimizer* optimizer, const std::string& name) {
  if (!std::isfinite(rate)) {
    return InvalidArgument("learning rate {} of '{}' must be a finite number", rate, name);
  }
  if (optimizer == nullptr || optimizer->name() != "Ftrl" || rate > 0) return Ok();
  return InvalidArgument("learning rate {} of '{}' must be above 0 for Ftrl", rate, name);
}

}  // namespace

Result<DeclaredParameters> Lane::Declare(const Declaration& declaration) {
  EDL_RETURN_IF_ERROR(state_.parameters.CheckBounds(declaration));
  return state_.Add(declaration);
}

Result<wire::PutAnswer> Lane::Put(const DeclaredParameters& declared, const wire::Put& put,
                                  std::span<const std::byte> tensors) {
  wire::TensorReader reader(tensors);
  std::vector<std::pair<TensorBlocks*, const float*>> shares;
  for (const uint32_t number : put.tensors) {
    EDL_ASSIGN_OR_RETURN(TensorBlocks* const share, At(declared.tensors, number, "tensor"));
    EDL_ASSIGN_OR_RETURN(const auto values, reader.Take<float>(share->values()));
    shares.emplace_back(share, values.data());
  }
  EDL_RETURN_IF_ERROR(reader.End());
  wire::PutAnswer answer;
  for (const auto& [share, values] : shares) {
    answer.taken += static_cast<uint32_t>(share->Put(values));
  }
  return answer;
}

Result<Lane::PullPlan> Lane::Plan(const DeclaredParameters& declared, const wire::Pull& pull,
                                  std::span<const std::byte> tensors) const {
  PullPlan plan{.unknown = pull.unknown};
  wire::TensorReader reader(tensors);
  for (const wire::TableEntry& share : pull.tables) {
    EDL_ASSIGN_OR_RETURN(Table* const table, At(declared.tables, share.table, "table"));
    EDL_ASSIGN_OR_RETURN(const auto ids, reader.Take<int64_t>(share.ids));
    plan.tables.emplace_back(table, ids);
    plan.bytes += wire::AlignedUp(ids.size() * table->spec().dim * sizeof(float));
  }
  EDL_RETURN_IF_ERROR(reader.End());
  if (pull.unknown == wire::Pull::Unknown::kMake) {
    for (const auto& [table, ids] : plan.tables) EDL_RETURN_IF_ERROR(table->Reserve(ids.size()));
  }
  for (const uint32_t number : pull.tensors) {
    EDL_ASSIGN_OR_RETURN(const TensorBlocks* const share, At(declared.tensors, number, "tensor"));
    if (!share->has_value()) {
      return NotFound("tensor '{}' has no value yet; put its value first", share->spec().name);
    }
    plan.tensors.push_back(share);
    plan.bytes += wire::AlignedUp(share->values() * sizeof(float));
  }
  return plan;
}

wire::PullAnswer Lane::Pull(const PullPlan& plan, std::byte* out) {
  const bool make = plan.unknown == wire::Pull::Unknown::kMake;
  for (const auto& [table, ids] : plan.tables) {
    table->Pull(ids, make ? Table::Unknown::kMake : Table::Unknown::kTell,
                reinterpret_cast<float*>(out));
    out += wire::AlignedUp(ids.size() * table->spec().dim * sizeof(float));
  }
  for (const TensorBlocks* const share : plan.tensors) {
    share->Pull(reinterpret_cast<float*>(out));
    out += wire::AlignedUp(share->values() * sizeof(float));
  }
  return {.version = version()};
}

Result<wire::OpenAnswer> Lane::Open(const wire::Open& open) {
  EDL_ASSIGN_OR_RETURN(const uint64_t watermark, state_.watermarks.Open(open.lease, open.shard));
  trained_ = true;
  return wire::OpenAnswer{.watermark = watermark};
}

Result<wire::PushAnswer> Lane::Push(const DeclaredParameters& declared, const wire::Push& push,
                                    std::span<const std::byte> tensors) {
  wire::TensorReader reader(tensors);
  std::vector<TableGradients> tables;
  tables.reserve(push.tables.size());
  for (const wire::TableEntry& share : push.tables) {
    EDL_ASSIGN_OR_RETURN(Table* const table, At(declared.tables, share.table, "table"));
    EDL_ASSIGN_OR_RETURN(const auto ids, reader.Take<int64_t>(share.ids));
    EDL_ASSIGN_OR_RETURN(const auto gradients, reader.Take<float>(ids.size() * table->spec().dim));
    EDL_RETURN_IF_ERROR(CheckRate(share.learning_rate, &table->optimizer(), table->spec().name));
    tables.push_back({table, ids, gradients.data(), share.learning_rate});
  }
  std::vector<TensorGradients> shares;
  shares.reserve(push.tensors.size());
  for (const wire::TensorEntry& share : push.tensors) {
    EDL_ASSIGN_OR_RETURN(TensorBlocks* const tensor, At(declared.tensors, share.tensor, "tensor"));
    EDL_ASSIGN_OR_RETURN(const auto gradients, reader.Take<float>(tensor->values()));
    if (!tensor->has_value()) {
      return NotFound("tensor '{}' has no value yet; put its value first", tensor->spec().name);
    }
    EDL_RETURN_IF_ERROR(CheckRate(share.learning_rate, tensor->optimizer(), tensor->spec().name));
    shares.push_back({tensor, gradients.data(), share.learning_rate});
  }
  EDL_RETURN_IF_ERROR(reader.End());
  if (!push.refused) EDL_RETURN_IF_ERROR(ReserveRows(tables));

  if (!push.refused && IsStale(push)) {
    const Watermarks::BatchCheck seen = state_.watermarks.Peek(push.lease, push.shard, push.batch);
    if (seen.outcome == Watermarks::Outcome::kApplied) {
      return wire::PushAnswer{.outcome = Watermarks::Outcome::kStale,
                              .watermark = seen.watermark,
                              .version = version()};
    }
  }
  Watermarks::BatchCheck check = state_.watermarks.Count(push.lease, push.shard, push.batch);
  const BucketSubset taking(state_.buckets, std::move(check.lacked));
  trained_ = trained_ || check.outcome == Watermarks::Outcome::kApplied;
  if (check.outcome == Watermarks::Outcome::kApplied && push.refused) {
    ++refused_;
  } else if (check.outcome == Watermarks::Outcome::kApplied && state_.parameters.in_rounds()) {
    for (const TableGradients& table : tables) state_.rounds.Add(table, taking);
    for (const TensorGradients& tensor : shares) state_.rounds.Add(tensor, taking);
    state_.rounds.Count(taking);
    state_.rounds.Close(state_.parameters.consistency().gradients, state_.steps);
  } else if (check.outcome == Watermarks::Outcome::kApplied) {
    const float share = ShareOfRate(push);
    for (TableGradients& table : tables) table.learning_rate *= share;
    for (TensorGradients& tensor : shares) tensor.learning_rate *= share;
    state_.steps.Begin(taking);
    for (const TableGradients& table : tables) state_.steps.Apply(table, taking);
    for (const TensorGradients& tensor : shares) state_.steps.Apply(tensor, taking);
  }
  return wire::PushAnswer{
      .outcome = check.outcome, .watermark = check.watermark, .version = version()};
}

Status Lane::ReserveRows(const std::vector<TableGradients>& pushes) {
  for (const TableGradients& push : pushes) {
    const auto* const round = state_.rounds.FindRows(*push.table);
    const size_t in_round = round == nullptr ? 0 : round->ids.size();
    EDL_RETURN_IF_ERROR(push.table->Reserve(push.ids.size() + in_round));
  }
  return Ok();
}

bool Lane::IsStale(const wire::Push& push) const {
  return state_.parameters.in_rounds() && push.version != wire::Push::kNoVersion &&
         version() > push.version &&
         version() - push.version > state_.parameters.consistency().tolerance;
}

float Lane::ShareOfRate(const wire::Push& push) const {
  if (!state_.parameters.consistency().modulate || push.version == wire::Push::kNoVersion) return 1;
  return 1.0F / static_cast<float>(version() > push.version ? version() - push.version : 1);
}

void Lane::Adopt(LaneState&& state) {
  CHECK(!state_.parameters.saving(), "a lane cannot be restored while it is saved");
  CHECK(state.buckets == state_.buckets, "a lane of buckets {} to {} got the state of {} to {}",
        state_.buckets.first, state_.buckets.end, state.buckets.first, state.buckets.end);
  state_ = std::move(state);
  trained_ = false;
  ++generation_;
}

}  // namespace edl::ps
