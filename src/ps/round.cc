#include "ps/round.h"

namespace edl::ps {

void Round::Add(Table& table, int64_t id, const float* gradient, float learning_rate) {
  Rows& rows = rows_[&table];
  rows.learning_rate = learning_rate;
  const size_t dim = table.spec().dim;
  const auto [place, is_new] = rows.places.try_emplace(id, rows.ids.size());
  if (is_new) {
    rows.ids.push_back(id);
    rows.gradients.insert(rows.gradients.end(), gradient, gradient + dim);
    return;
  }
  float* const sum = rows.gradients.data() + place->second * dim;
  for (size_t i = 0; i < dim; ++i) sum[i] += gradient[i];
}

Round::Blocks& Round::BlocksOf(TensorShare& tensor) {
  Blocks& blocks = blocks_[&tensor];
  if (blocks.gradients.empty()) blocks.gradients.resize(tensor.values());
  return blocks;
}

}  // namespace edl::ps
