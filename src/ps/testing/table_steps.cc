// A table that is driven from outside, for tests that know the right answer in another language.
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

OptimizerOptions OptionsFrom(const json& given) {
  OptimizerOptions options{.name = given.at("name")};
  const auto take = [&](const char* name, auto& field) { field = given.value(name, field); };
  take("momentum", options.momentum);
  take("nesterov", options.nesterov);
  take("initial_accumulator_value", options.initial_accumulator_value);
  take("epsilon", options.epsilon);
  take("beta_1", options.beta_1);
  take("beta_2", options.beta_2);
  take("amsgrad", options.amsgrad);
  take("rho", options.rho);
  take("centered", options.centered);
  take("learning_rate_power", options.learning_rate_power);
  take("l1_regularization_strength", options.l1_regularization_strength);
  take("l2_regularization_strength", options.l2_regularization_strength);
  take("l2_shrinkage_regularization_strength", options.l2_shrinkage_regularization_strength);
  take("beta", options.beta);
  take("weight_decay", options.weight_decay);
  return options;
}

int Main() {
  const json given = json::parse(std::cin);
  const auto optimizer = MakeOptimizer(OptionsFrom(given.at("optimizer")));
  CHECK(optimizer.ok(), "{}", optimizer.status().message());
  const size_t dim = given.at("dim");
  Table table({.name = "t", .dim = dim, .initializer = Initializer::Constant(given.at("initial"))},
              **optimizer);
  int64_t number = 0;
  for (const json& step : given.at("steps")) {
    const std::vector<int64_t> ids = step.at("ids");
    const std::vector<float> gradients = step.at("gradients");
    CHECK(gradients.size() == ids.size() * dim, "{} gradients", gradients.size());
    table.Push(ids, gradients.data(),
               {.learning_rate = step.at("learning_rate"), .number = ++number});
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
