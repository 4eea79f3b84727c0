// Applies gradients to a table, for tests in Python that compare the result with Keras.
// Reads one JSON object: {"optimizer": {...}, "dim": D, "initial": X, "steps": [{"learning_rate":
// R, "ids": [...], "gradients": [...]}], "ids": [...]}; prints the rows of "ids" as one JSON list.

#include <iostream>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "ps/table.h"

namespace edl::ps {
namespace {

using nlohmann::json;

int Main() {
  const json given = json::parse(std::cin);
  const auto optimizer = ParseOptimizer(given.at("optimizer").dump());
  CHECK(optimizer.ok(), "{}", optimizer.status().message());
  CHECK(MakeOptimizer(*optimizer).ok(), "{}", MakeOptimizer(*optimizer).status().message());
  const size_t dim = given.at("dim");
  Table table({.name = "t",
               .dim = dim,
               .initializer = Initializer::Constant(given.at("initial")),
               .optimizer = *optimizer});
  int64_t number = 0;
  for (const json& step : given.at("steps")) {
    const std::vector<int64_t> ids = step.at("ids");
    const std::vector<float> gradients = step.at("gradients");
    CHECK(gradients.size() == ids.size() * dim, "{} gradients", gradients.size());
    table.Push(ids, gradients.data(),
               {.learning_rate = step.at("learning_rate"), .number = ++number}, 0);
  }
  const std::vector<int64_t> ids = given.at("ids");
  std::vector<float> rows(ids.size() * dim);
  table.Pull(ids, Table::Unknown::kTell, rows.data());
  std::cout << json(rows) << "\n";
  return 0;
}

}  // namespace
}  // namespace edl::ps

int main() { return edl::ps::Main(); }
