#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ps/initializer.h"
#include "ps/optimizer/optimizer.h"

namespace edl::ps {

// What a table is, the same on every lane.
struct TableSpec {
  std::string name;
  size_t dim = 0;
  Initializer initializer;
  OptimizerOptions optimizer;
  uint64_t seed = 0;  // of its rows: SeedOf(...)
  // Bounds; 0: none. Memory of its rows on all servers together: above it the least used go. And a
  // row goes when so many pushes did not change it.
  uint64_t most_bytes = 0;
  uint64_t evict_after = 0;
  // An id gets its row with so many pushes; until then it is what a new row would be. 0: at once.
  uint64_t admit_after = 0;

  bool operator==(const TableSpec&) const = default;
};

// What a dense tensor is, the same on every lane.
struct TensorSpec {
  std::string name;
  size_t size = 0;  // values
  // None: it is not trained, and a push adds its change.
  std::optional<OptimizerOptions> optimizer;

  bool operator==(const TensorSpec&) const = default;
};

// How pushes become steps, the same for all parameters.
struct Consistency {
  // A synchronous round has so many gradients; 0: each push is a step.
  uint32_t gradients = 0;
  // A gradient of parameters that are more rounds old than this is refused.
  uint32_t tolerance = 0;
  // Without rounds: the learning rate is divided by the pushes that came since the parameters.
  bool modulate = false;

  bool operator==(const Consistency&) const = default;
};

// All that a worker will speak of.
struct Declaration {
  Consistency consistency;
  std::vector<TableSpec> tables;
  std::vector<TensorSpec> tensors;
};

// Reads docs/formats/parameters.md. InvalidArgument names the place and what may stand there.
Result<Declaration> ParseDeclaration(std::string_view text);

// Writes what ParseDeclaration reads to the same again.
std::string ToText(const Declaration& declaration);

// Reads the settings of an optimizer alone.
Result<OptimizerOptions> ParseOptimizer(std::string_view text);

}  // namespace edl::ps
