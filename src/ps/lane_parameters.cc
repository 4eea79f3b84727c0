#include "ps/lane_parameters.h"

#include <limits>
#include <string_view>

#include "base/check.h"
#include "ps/optimizer/optimizer.h"

namespace edl::ps {
namespace {

// Limits of all declarations of a lane together.
constexpr size_t kMostParameters = size_t{1} << 16;
constexpr size_t kMostTensorValues = size_t{1} << 34;

constexpr int kMostCancelledSaves = 200;
static_assert(kMostCancelledSaves < std::numeric_limits<SaveNumber>::max() - 1);

template <typename Parameter, typename Spec>
Status CheckSpecs(const LaneParameters::ByName<Parameter>& parameters,
                  const std::vector<Spec>& specs, std::string_view kind) {
  size_t count = parameters.size();
  for (const Spec& spec : specs) {
    const auto found = parameters.find(spec.name);
    if (found == parameters.end()) {
      ++count;
    } else if (found->second->spec() != spec) {
      return FailedPrecondition(
          "{} '{}' was already declared with other settings: declare it the same in all workers",
          kind, spec.name);
    }
  }
  if (count <= kMostParameters) return Ok();
  return ResourceExhausted("{} {}s are declared; a server accepts at most {}", count, kind,
                           kMostParameters);
}

}  // namespace

double LaneParameters::ShareOfIds() const {
  return static_cast<double>(buckets_.size()) / wire::kBuckets;
}

Status LaneParameters::CheckBounds(const Declaration& declaration) const {
  for (const TableSpec& spec : declaration.tables) {
    EDL_RETURN_IF_ERROR(MakeOptimizer(spec.optimizer).status().Within("table '" + spec.name + "'"));
    if (spec.most_bytes == 0) continue;
    const size_t least = Table::LeastBytes(spec, ShareOfIds());
    if (spec.most_bytes >= least) continue;
    return InvalidArgument(
        "table '{}': most_bytes={} is too little for dimension {} and a lane with {} of {} "
        "buckets; it must be at least {}",
        spec.name, spec.most_bytes, spec.dim, buckets_.size(), wire::kBuckets, least);
  }
  return Ok();
}

Status LaneParameters::Check(const Declaration& declaration) const {
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
  if (declared_ && consistency_ != declaration.consistency) {
    return FailedPrecondition(
        "the consistency was already declared with other settings: declare it the same in all "
        "workers");
  }
  if (values > kMostTensorValues) {
    return ResourceExhausted("the declared tensors have {} values; a job can have at most {}",
                             values, kMostTensorValues);
  }
  EDL_RETURN_IF_ERROR(CheckSpecs(tables_, declaration.tables, "table"));
  return CheckSpecs(tensors_, declaration.tensors, "tensor");
}

DeclaredParameters LaneParameters::Add(const Declaration& declaration) {
  consistency_ = declaration.consistency;
  declared_ = true;
  DeclaredParameters declared;
  for (const TableSpec& spec : declaration.tables) {
    auto& table = tables_[spec.name];
    if (table == nullptr) table = std::make_unique<Table>(spec, save_, ShareOfIds());
    declared.tables.push_back(table.get());
  }
  for (const TensorSpec& spec : declaration.tensors) {
    auto& tensor = tensors_[spec.name];
    if (tensor == nullptr) {
      tensor = std::make_unique<TensorBlocks>(spec, buckets_.first, buckets_.end, save_);
    }
    declared.tensors.push_back(tensor.get());
  }
  return declared;
}

size_t LaneParameters::rows() const {
  size_t sum = 0;
  for (const auto& [name, table] : tables_) sum += table->rows();
  return sum;
}

uint64_t LaneParameters::evicted() const {
  uint64_t sum = 0;
  for (const auto& [name, table] : tables_) sum += table->evicted();
  return sum;
}

size_t LaneParameters::bytes() const {
  size_t sum = 0;
  for (const auto& [name, table] : tables_) sum += table->bytes();
  for (const auto& [name, tensor] : tensors_) sum += tensor->bytes();
  return sum;
}

SaveNumber LaneParameters::BeginSave() {
  CHECK(!saving_, "a save of this lane is already running");
  saving_ = true;
  // Save numbers wrap around. A row that no complete save has renumbered could still have the
  // number of the next save, and would count as saved. So after many cancelled saves in a row, all
  // rows are renumbered, which is a pass over all of them.
  if (++cancelled_saves_ > kMostCancelledSaves) {
    for (const auto& [name, table] : tables_) {
      table->Renumber();
      if (table->candidates() != nullptr) table->candidates()->Renumber();
    }
    for (const auto& [name, tensor] : tensors_) tensor->Renumber();
    cancelled_saves_ = 0;
  }
  return ++save_;
}

void LaneParameters::EndSave(SaveEnd end) {
  saving_ = false;
  if (end == SaveEnd::kComplete) cancelled_saves_ = 0;
}

}  // namespace edl::ps
