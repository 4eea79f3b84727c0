#pragma once

#include <cstdint>
#include <span>

namespace edl::ps {

class Table;
class TensorBlocks;

// Gradients for rows of a table, dim values for each id. Does not own them.
struct TableGradients {
  Table* table = nullptr;
  std::span<const int64_t> ids;
  const float* values = nullptr;
  float learning_rate = 0;
};

// Gradients for all blocks that a lane has of a tensor. Does not own them.
struct TensorGradients {
  TensorBlocks* tensor = nullptr;
  const float* values = nullptr;
  float learning_rate = 0;
};

}  // namespace edl::ps
