#include "ps/bucket_steps.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "ps/table.h"
#include "ps/tensor_blocks.h"

namespace edl::ps {

void BucketSteps::Begin(const BucketSubset& taking) {
  ++version_;
  for (size_t bucket = buckets_.first; bucket < buckets_.end; ++bucket) {
    if (taking.Contains(static_cast<wire::Bucket>(bucket))) ++counts_[bucket];
  }
  if (taking.has_all()) {
    ++most_;  // they agree or differ as before
  } else {
    Compare();
  }
}

void BucketSteps::Compare() {
  const auto [least, most] = std::ranges::minmax_element(counts());
  agree_ = *least == *most;
  most_ = *most;
}

void BucketSteps::Settle() {
  Compare();
  version_ = 0;
}

void BucketSteps::Apply(const TableGradients& gradients, const BucketSubset& taking) const {
  Table& table = *gradients.table;
  const bool by_step = table.optimizer().counts_steps();
  const auto now = static_cast<uint32_t>(most_);
  if (taking.has_all() && (agree_ || !by_step)) {
    table.Push(gradients.ids, gradients.values,
               {.learning_rate = gradients.learning_rate,
                .number = static_cast<int64_t>(counts_[buckets_.first])},
               now);
    return;
  }
  // The buckets differ: group the rows by the step number of their bucket.
  struct Rows {
    std::vector<int64_t> ids;
    std::vector<float> gradients;
  };
  std::map<uint64_t, Rows> by_number;
  const size_t dim = table.spec().dim;
  for (size_t i = 0; i < gradients.ids.size(); ++i) {
    const wire::Bucket bucket = wire::BucketOf(gradients.ids[i]);
    if (!buckets_.Contains(bucket) || !taking.Contains(bucket)) continue;
    Rows& rows = by_number[by_step ? counts_[bucket] : 1];
    rows.ids.push_back(gradients.ids[i]);
    const float* const gradient = gradients.values + i * dim;
    rows.gradients.insert(rows.gradients.end(), gradient, gradient + dim);
  }
  for (const auto& [number, rows] : by_number) {
    table.Push(rows.ids, rows.gradients.data(),
               {.learning_rate = gradients.learning_rate, .number = static_cast<int64_t>(number)},
               now);
  }
}

void BucketSteps::Apply(const TensorGradients& gradients, const BucketSubset& taking) const {
  gradients.tensor->Push(gradients.values, [&](wire::Bucket bucket) -> std::optional<Step> {
    if (!taking.Contains(bucket)) return std::nullopt;
    return Step{.learning_rate = gradients.learning_rate,
                .number = static_cast<int64_t>(counts_[bucket])};
  });
}

}  // namespace edl::ps
