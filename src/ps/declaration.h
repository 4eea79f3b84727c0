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

// The settings of an embedding table, the same on every lane.
struct TableSpec {
  std::string name;
  size_t dim = 0;
  Initializer initializer;
  OptimizerOptions optimizer;
  uint64_t seed = 0;  // of the initial values of rows: SeedOf(...)
  // Limit of the memory of rows on all servers together: above it, the least used rows are evicted.
  // 0: no limit.
  uint64_t most_bytes = 0;
  // A row that this many pushes did not change is evicted. 0: never.
  uint64_t evict_after = 0;
  // An id gets its row with this many pushes; until then pulls return the initial values. 0: with
  // the first pull or push.
  uint64_t admit_after = 0;

  bool operator==(const TableSpec&) const = default;
};

// The settings of a dense tensor, the same on every lane.
struct TensorSpec {
  std::string name;
  size_t size = 0;  // number of values
  // Without a value: the tensor is not trained, and pushes add changes to it.
  std::optional<OptimizerOptions> optimizer;

  bool operator==(const TensorSpec&) const = default;
};

// How pushes become steps, the same for all parameters.
struct Consistency {
  // The number of gradients in a synchronous round; 0: no rounds, each push is a step.
  uint32_t gradients = 0;
  // With rounds: a push is rejected if its parameters are older than this many rounds.
  uint32_t tolerance = 0;
  // Without rounds: divides the learning rate of a push by the number of pushes since its
  // parameters were pulled.
  bool modulate = false;

  bool operator==(const Consistency&) const = default;
};

// All tables and tensors that a worker uses.
struct Declaration {
  Consistency consistency;
  std::vector<TableSpec> tables;
  std::vector<TensorSpec> tensors;
};

// Parses a declaration, docs/formats/parameters.md. InvalidArgument: a field is invalid; the
// message names the field and its valid values.
Result<Declaration> ParseDeclaration(std::string_view text);

// The inverse of ParseDeclaration.
std::string ToText(const Declaration& declaration);

// Parses the settings of an optimizer.
Result<OptimizerOptions> ParseOptimizer(std::string_view text);

}  // namespace edl::ps
