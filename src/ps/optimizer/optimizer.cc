#include "ps/optimizer/optimizer.h"

#include <array>
#include <cmath>
#include <vector>

#include <fmt/ranges.h>

namespace edl::ps {
namespace {

struct Rule {
  std::string_view name;
  std::unique_ptr<Optimizer> (*make)(const OptimizerOptions&);
};

constexpr std::array kRules = {
    Rule{"SGD", MakeSgd},   Rule{"Momentum", MakeMomentum}, Rule{"Adagrad", MakeAdagrad},
    Rule{"Adam", MakeAdam}, Rule{"AdamW", MakeAdam},        Rule{"RMSprop", MakeRmsprop},
    Rule{"Ftrl", MakeFtrl},
};

// False for NaN.
bool IsWithin(double value, double least, double below) { return value >= least && value < below; }

Status CheckShare(std::string_view name, double value) {
  if (IsWithin(value, 0, 1)) return Ok();
  return InvalidArgument("{}={} must be at least 0 and below 1", name, value);
}

Status CheckNotNegative(std::string_view name, float value) {
  if (IsWithin(value, 0, INFINITY)) return Ok();
  return InvalidArgument("{}={} must be at least 0", name, value);
}

Status Check(const OptimizerOptions& options) {
  EDL_RETURN_IF_ERROR(CheckShare("momentum", options.momentum));
  EDL_RETURN_IF_ERROR(CheckShare("beta_1", options.beta_1));
  EDL_RETURN_IF_ERROR(CheckShare("beta_2", options.beta_2));
  EDL_RETURN_IF_ERROR(CheckShare("rho", options.rho));
  EDL_RETURN_IF_ERROR(CheckNotNegative("epsilon", options.epsilon));
  EDL_RETURN_IF_ERROR(CheckNotNegative("weight_decay", options.weight_decay));
  EDL_RETURN_IF_ERROR(
      CheckNotNegative("initial_accumulator_value", options.initial_accumulator_value));
  EDL_RETURN_IF_ERROR(
      CheckNotNegative("l1_regularization_strength", options.l1_regularization_strength));
  EDL_RETURN_IF_ERROR(
      CheckNotNegative("l2_regularization_strength", options.l2_regularization_strength));
  EDL_RETURN_IF_ERROR(CheckNotNegative("l2_shrinkage_regularization_strength",
                                       options.l2_shrinkage_regularization_strength));
  EDL_RETURN_IF_ERROR(CheckNotNegative("beta", options.beta));
  if (!(options.learning_rate_power <= 0)) {
    return InvalidArgument("learning_rate_power={} must be at most 0", options.learning_rate_power);
  }
  if (options.name == "Ftrl" && options.initial_accumulator_value == 0) {
    return InvalidArgument("initial_accumulator_value=0 must be above 0 for Ftrl");
  }
  return Ok();
}

}  // namespace

Result<std::unique_ptr<Optimizer>> MakeOptimizer(const OptimizerOptions& options) {
  EDL_RETURN_IF_ERROR(Check(options).Within("optimizer " + options.name));
  for (const Rule& rule : kRules) {
    if (rule.name != options.name) continue;
    const bool has_momentum = options.name == "SGD" && options.momentum > 0;
    return has_momentum ? MakeMomentum(options) : rule.make(options);
  }
  std::vector<std::string_view> names;
  names.reserve(kRules.size());
  for (const Rule& rule : kRules) names.push_back(rule.name);
  return InvalidArgument("unknown optimizer '{}': use one of {}", options.name,
                         fmt::join(names, ", "));
}

}  // namespace edl::ps
