#include "ps/lane.h"

#include <algorithm>
#include <cmath>

#include "wire/frame.h"

namespace edl::ps {
namespace {

// What a number of a connection's own stands for.
template <typename Thing>
Result<Thing*> At(const std::vector<Thing*>& things, uint32_t number, std::string_view kind) {
  if (number < things.size()) return things[number];
  return InvalidArgument("{} {} was not declared on this connection, which has {}", kind, number,
                         things.size());
}

// What one who declares may ask for, in all that was ever declared at a lane.
constexpr size_t kMostThings = size_t{1} << 16;
constexpr size_t kMostTensorValues = size_t{1} << 34;

// FailedPrecondition: a thing of that name is there and is another. ResourceExhausted: there are
// too many.
template <typename Thing, typename Spec>
Status CheckNames(const std::map<std::string, std::unique_ptr<Thing>, std::less<>>& things,
                  const std::vector<Spec>& specs, std::string_view kind) {
  size_t count = things.size();
  for (const Spec& spec : specs) {
    const auto found = things.find(spec.name);
    if (found == things.end()) {
      ++count;
    } else if (found->second->spec() != spec) {
      return FailedPrecondition("{} '{}' is there already and was declared otherwise", kind,
                                spec.name);
    }
  }
  if (count <= kMostThings) return Ok();
  return ResourceExhausted("{} of kind {}, and a server takes {}", count, kind, kMostThings);
}

Status CheckRate(float rate, const Optimizer* optimizer, const std::string& name) {
  if (!std::isfinite(rate)) {
    return InvalidArgument("learning rate {} of '{}' must be a finite number", rate, name);
  }
  if (optimizer == nullptr || optimizer->name() != "Ftrl" || rate > 0) return Ok();
  return InvalidArgument("learning rate {} of '{}' must be above 0 for Ftrl", rate, name);
}

}  // namespace

Lane::Lane(const wire::Placement& placement, size_t place)
    : placement_(placement),
      place_(place),
      first_(placement.FirstOf(place)),
      end_(placement.EndOf(place)),
      watermarks_(first_, end_),
      round_(first_, end_) {}

double Lane::ShareOfIds() const { return static_cast<double>(end_ - first_) / wire::kBuckets; }

Status Lane::CheckBounds(const Declaration& declaration) const {
  for (const TableSpec& spec : declaration.tables) {
    EDL_RETURN_IF_ERROR(MakeOptimizer(spec.optimizer).status().Within("table '" + spec.name + "'"));
    if (spec.most_bytes == 0) continue;
    const size_t least = Table::LeastBytes(spec, ShareOfIds());
    if (spec.most_bytes >= least) continue;
    return InvalidArgument(
        "table '{}': most_bytes={} is too little for its dimension and {} lanes; it must be at "
        "least {}",
        spec.name, spec.most_bytes, placement_.lanes(), least);
  }
  return Ok();
}

Result<Lane::Names> Lane::Declare(const Declaration& declaration) {
  EDL_RETURN_IF_ERROR(CheckBounds(declaration));
  return Add(declaration);
}

Status Lane::CheckDeclaration(const Declaration& declaration) const {
  size_t values = 0;
  for (const auto& [name, tensor] : tensors_) values += tensor->spec().size;
  for (const TableSpec& spec : declaration.tables) {
    EDL_RETURN_IF_ERROR(MakeOptimizer(spec.optimizer).status().Within("table '" + spec.name + "'"));
  }
  for (const TensorSpec& spec : declaration.tensors) {
    if (!tensors_.contains(spec.name)) values += spec.size;
    if (!spec.optimizer.has_value()) continue;
    EDL_RETURN_IF_ERROR(
        MakeOptimizer(*spec.optimizer).status().Within("tensor '" + spec.name + "'"));
  }
  if (declared_.has_value() && *declared_ != declaration.consistency) {
    return FailedPrecondition("the consistency is declared otherwise already");
  }
  if (values > kMostTensorValues) {
    return ResourceExhausted("tensors of {} values in all, and servers take {}", values,
                             kMostTensorValues);
  }
  EDL_RETURN_IF_ERROR(CheckNames(tables_, declaration.tables, "table"));
  return CheckNames(tensors_, declaration.tensors, "tensor");
}

Result<Lane::Names> Lane::Add(const Declaration& declaration) {
  EDL_RETURN_IF_ERROR(CheckDeclaration(declaration));
  // Rounds that were restored, and that nobody will fill as they were meant.
  if (consistency_.gradients != declaration.consistency.gradients) Flush();
  declared_ = consistency_ = declaration.consistency;
  Names names;
  for (const TableSpec& spec : declaration.tables) {
    auto& table = tables_[spec.name];
    if (table == nullptr) table = std::make_unique<Table>(spec, save_, ShareOfIds());
    names.tables.push_back(table.get());
  }
  for (const TensorSpec& spec : declaration.tensors) {
    auto& tensor = tensors_[spec.name];
    if (tensor == nullptr) tensor = std::make_unique<TensorShare>(spec, first_, end_, save_);
    names.tensors.push_back(tensor.get());
  }
  return names;
}

Result<wire::PutAnswer> Lane::Put(const Names& names, const wire::Put& put,
                                  std::span<const std::byte> tensors) {
  wire::TensorReader reader(tensors);
  std::vector<std::pair<TensorShare*, const float*>> shares;
  for (const uint32_t number : put.tensors) {
    EDL_ASSIGN_OR_RETURN(TensorShare* const share, At(names.tensors, number, "tensor"));
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

Result<Lane::PullPlan> Lane::Plan(const Names& names, const wire::Pull& pull,
                                  std::span<const std::byte> tensors) const {
  PullPlan plan{.unknown = pull.unknown};
  wire::TensorReader reader(tensors);
  for (const wire::TableShare& share : pull.tables) {
    EDL_ASSIGN_OR_RETURN(Table* const table, At(names.tables, share.table, "table"));
    EDL_ASSIGN_OR_RETURN(const auto ids, reader.Take<int64_t>(share.ids));
    plan.tables.emplace_back(table, ids);
    plan.bytes += wire::AlignedUp(ids.size() * table->spec().dim * sizeof(float));
  }
  EDL_RETURN_IF_ERROR(reader.End());
  if (pull.unknown == wire::Pull::Unknown::kMake) {
    for (const auto& [table, ids] : plan.tables) EDL_RETURN_IF_ERROR(table->Reserve(ids.size()));
  }
  for (const uint32_t number : pull.tensors) {
    EDL_ASSIGN_OR_RETURN(const TensorShare* const share, At(names.tensors, number, "tensor"));
    if (!share->has_value()) {
      return NotFound("tensor '{}' has no value yet: put one", share->spec().name);
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
  for (const TensorShare* const share : plan.tensors) {
    share->Pull(reinterpret_cast<float*>(out));
    out += wire::AlignedUp(share->values() * sizeof(float));
  }
  return {.version = version_};
}

Result<wire::OpenAnswer> Lane::Open(const wire::Open& open) {
  EDL_ASSIGN_OR_RETURN(const uint64_t mark, watermarks_.Open(open.lease, open.shard));
  trained_ = true;
  return wire::OpenAnswer{.mark = mark};
}

Result<wire::PushAnswer> Lane::Push(const Names& names, const wire::Push& push,
                                    std::span<const std::byte> tensors) {
  wire::TensorReader reader(tensors);
  std::vector<TablePush> tables;
  tables.reserve(push.tables.size());
  for (const wire::TableShare& share : push.tables) {
    EDL_ASSIGN_OR_RETURN(Table* const table, At(names.tables, share.table, "table"));
    EDL_ASSIGN_OR_RETURN(const auto ids, reader.Take<int64_t>(share.ids));
    EDL_ASSIGN_OR_RETURN(const auto gradients, reader.Take<float>(ids.size() * table->spec().dim));
    EDL_RETURN_IF_ERROR(CheckRate(share.learning_rate, &table->optimizer(), table->spec().name));
    tables.push_back({table, ids, gradients.data(), share.learning_rate});
  }
  std::vector<TensorPush> shares;
  shares.reserve(push.tensors.size());
  for (const wire::TensorShare& share : push.tensors) {
    EDL_ASSIGN_OR_RETURN(TensorShare* const tensor, At(names.tensors, share.tensor, "tensor"));
    EDL_ASSIGN_OR_RETURN(const auto gradients, reader.Take<float>(tensor->values()));
    if (!tensor->has_value()) {
      return NotFound("tensor '{}' has no value yet: put one", tensor->spec().name);
    }
    EDL_RETURN_IF_ERROR(CheckRate(share.learning_rate, tensor->optimizer(), tensor->spec().name));
    shares.push_back({tensor, gradients.data(), share.learning_rate});
  }
  EDL_RETURN_IF_ERROR(reader.End());
  if (!push.refused) EDL_RETURN_IF_ERROR(ReserveRows(tables));

  if (!push.refused && IsStale(push)) {
    const Watermarks::BatchCheck seen = watermarks_.Peek(push.lease, push.shard, push.batch);
    if (seen.outcome == Watermarks::Outcome::kApplied) {
      return wire::PushAnswer{
          .outcome = Watermarks::Outcome::kStale, .mark = seen.mark, .version = version_};
    }
  }
  const Watermarks::BatchCheck verdict = watermarks_.Count(push.lease, push.shard, push.batch);
  trained_ = trained_ || verdict.outcome == Watermarks::Outcome::kApplied;
  if (verdict.outcome == Watermarks::Outcome::kApplied && push.refused) {
    ++refused_;
  } else if (verdict.outcome == Watermarks::Outcome::kApplied && InRounds()) {
    for (const TablePush& table : tables) Contribute(table, verdict);
    const auto takes = [&](wire::Bucket bucket) { return Takes(verdict, bucket); };
    for (const TensorPush& share : shares) {
      round_.Add(*share.tensor, share.gradients, share.learning_rate, takes);
    }
    for (size_t bucket = first_; bucket < end_; ++bucket) {
      if (takes(static_cast<wire::Bucket>(bucket))) round_.Count(static_cast<wire::Bucket>(bucket));
    }
    CloseRounds(consistency_.gradients);
  } else if (verdict.outcome == Watermarks::Outcome::kApplied) {
    const float share = ShareOfRate(push);
    for (TablePush& table : tables) table.learning_rate *= share;
    for (TensorPush& tensor : shares) tensor.learning_rate *= share;
    CountSteps(verdict);
    for (const TablePush& table : tables) Apply(table, verdict);
    for (const TensorPush& share : shares) Apply(share, verdict);
  }
  return wire::PushAnswer{.outcome = verdict.outcome, .mark = verdict.mark, .version = version_};
}

Status Lane::ReserveRows(const std::vector<TablePush>& pushes) {
  for (const TablePush& push : pushes) {
    const auto round = round_.rows().find(push.table);
    const size_t in_round = round == round_.rows().end() ? 0 : round->second.ids.size();
    EDL_RETURN_IF_ERROR(push.table->Reserve(push.ids.size() + in_round));
  }
  return Ok();
}

void Lane::CountSteps(const Watermarks::BatchCheck& verdict) {
  ++version_;
  for (size_t bucket = first_; bucket < end_; ++bucket) {
    if (Takes(verdict, static_cast<wire::Bucket>(bucket))) ++steps_[bucket];
  }
  if (verdict.lacked.has_value()) {
    CheckSteps();
  } else {
    ++most_steps_;  // they agree as before
  }
}

void Lane::CheckSteps() {
  steps_agree_ = std::all_of(steps_.begin() + first_, steps_.begin() + static_cast<ptrdiff_t>(end_),
                             [&](uint64_t step) { return step == steps_[first_]; });
  most_steps_ =
      *std::max_element(steps_.begin() + first_, steps_.begin() + static_cast<ptrdiff_t>(end_));
}

void Lane::Apply(const TablePush& push, const Watermarks::BatchCheck& verdict) {
  Table& table = *push.table;
  const bool by_step = table.optimizer().counts_steps();
  const auto now = static_cast<uint32_t>(most_steps_);
  if (!verdict.lacked.has_value() && (steps_agree_ || !by_step)) {
    table.Push(
        push.ids, push.gradients,
        {.learning_rate = push.learning_rate, .number = static_cast<int64_t>(steps_[first_])}, now);
    return;
  }
  // Buckets differ: those that take part are sorted by the step that they are at.
  struct Rows {
    std::vector<int64_t> ids;
    std::vector<float> gradients;
  };
  std::map<uint64_t, Rows> by_number;
  const size_t dim = table.spec().dim;
  for (size_t i = 0; i < push.ids.size(); ++i) {
    const wire::Bucket bucket = wire::BucketOf(push.ids[i]);
    if (bucket < first_ || bucket >= end_ || !Takes(verdict, bucket)) continue;
    Rows& rows = by_number[by_step ? steps_[bucket] : 1];
    rows.ids.push_back(push.ids[i]);
    const float* const gradient = push.gradients + i * dim;
    rows.gradients.insert(rows.gradients.end(), gradient, gradient + dim);
  }
  for (const auto& [number, rows] : by_number) {
    table.Push(rows.ids, rows.gradients.data(),
               {.learning_rate = push.learning_rate, .number = static_cast<int64_t>(number)}, now);
  }
}

void Lane::Apply(const TensorPush& push, const Watermarks::BatchCheck& verdict) {
  push.tensor->Push(push.gradients, [&](wire::Bucket bucket) -> std::optional<Step> {
    if (!Takes(verdict, bucket)) return std::nullopt;
    return Step{.learning_rate = push.learning_rate,
                .number = static_cast<int64_t>(steps_[bucket])};
  });
}

size_t Lane::rows() const {
  size_t sum = 0;
  for (const auto& [name, table] : tables_) sum += table->rows();
  return sum;
}

uint64_t Lane::evicted() const {
  uint64_t sum = 0;
  for (const auto& [name, table] : tables_) sum += table->evicted();
  return sum;
}

size_t Lane::bytes() const {
  size_t sum = 0;
  for (const auto& [name, table] : tables_) sum += table->bytes();
  for (const auto& [name, tensor] : tensors_) sum += tensor->bytes();
  return sum;
}

}  // namespace edl::ps
