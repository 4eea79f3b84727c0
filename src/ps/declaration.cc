#include "ps/declaration.h"

#include <cmath>
#include <set>
#include <type_traits>
#include <utility>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/json_fields.h"

namespace edl::ps {
namespace {

using nlohmann::json;

// Limits that no real model reaches. A longer row would not fit into a frame.
constexpr size_t kMostDim = size_t{1} << 20;
constexpr size_t kMostValues = size_t{1} << 32;
constexpr uint64_t kDefaultSeed = 0;
// Limit of a name in bytes.
constexpr size_t kLongestName = 1000;
// The default weight decay of AdamW in tf.keras 2.15.
constexpr float kAdamWDecay = 0.004F;

Result<OptimizerOptions> ReadOptimizer(const json& given, const std::string& where) {
  OptimizerOptions options;
  JsonFields fields(given, where);
  fields.Take("name", options.name);
  fields.Take("momentum", options.momentum);
  fields.Take("nesterov", options.nesterov);
  fields.Take("initial_accumulator_value", options.initial_accumulator_value);
  fields.Take("epsilon", options.epsilon);
  fields.Take("beta_1", options.beta_1);
  fields.Take("beta_2", options.beta_2);
  fields.Take("amsgrad", options.amsgrad);
  fields.Take("rho", options.rho);
  fields.Take("centered", options.centered);
  fields.Take("learning_rate_power", options.learning_rate_power);
  fields.Take("l1_regularization_strength", options.l1_regularization_strength);
  fields.Take("l2_regularization_strength", options.l2_regularization_strength);
  fields.Take("l2_shrinkage_regularization_strength", options.l2_shrinkage_regularization_strength);
  fields.Take("beta", options.beta);
  if (options.name == "AdamW") options.weight_decay = kAdamWDecay;
  fields.Take("weight_decay", options.weight_decay);
  EDL_RETURN_IF_ERROR(fields.Done());
  return options;
}

json ToJson(const OptimizerOptions& options) {
  return {{"name", options.name},
          {"momentum", options.momentum},
          {"nesterov", options.nesterov},
          {"initial_accumulator_value", options.initial_accumulator_value},
          {"epsilon", options.epsilon},
          {"beta_1", options.beta_1},
          {"beta_2", options.beta_2},
          {"amsgrad", options.amsgrad},
          {"rho", options.rho},
          {"centered", options.centered},
          {"learning_rate_power", options.learning_rate_power},
          {"l1_regularization_strength", options.l1_regularization_strength},
          {"l2_regularization_strength", options.l2_regularization_strength},
          {"l2_shrinkage_regularization_strength", options.l2_shrinkage_regularization_strength},
          {"beta", options.beta},
          {"weight_decay", options.weight_decay}};
}

json ToJson(const Initializer& initializer) {
  switch (initializer.kind) {
    case Initializer::Kind::kConstant:
      return {{"name", "constant"}, {"value", initializer.a}};
    case Initializer::Kind::kUniform:
      return {{"name", "uniform"}, {"minval", initializer.a}, {"maxval", initializer.b}};
    case Initializer::Kind::kNormal:
      return {{"name", "normal"}, {"mean", initializer.a}, {"stddev", initializer.b}};
    case Initializer::Kind::kTruncatedNormal:
      return {{"name", "truncated_normal"}, {"mean", initializer.a}, {"stddev", initializer.b}};
  }
  return {};
}

// Accepts the names and settings of Keras, and the short names of its string identifiers.
Result<Initializer> ReadInitializer(const json& given, const std::string& where) {
  std::string name = "uniform";
  float value = 0;
  float least = -0.05F;
  float most = 0.05F;
  float mean = 0;
  float stddev = 0.05F;
  uint64_t fan_in = 1;
  uint64_t fan_out = 1;
  constexpr uint64_t kMostFan = uint64_t{1} << 53;
  JsonFields fields(given, where);
  fields.Take("name", name);
  name = name.substr(0, kLongestName);
  Initializer made;
  if (name == "zeros") {
  } else if (name == "ones") {
    made = Initializer::Constant(1);
  } else if (name == "constant") {
    fields.Take("value", value);
    made = Initializer::Constant(value);
  } else if (name == "uniform" || name == "random_uniform") {
    fields.Take("minval", least);
    fields.Take("maxval", most);
    made = Initializer::Uniform(least, most);
  } else if (name == "normal" || name == "random_normal" || name == "truncated_normal") {
    fields.Take("mean", mean);
    fields.Take("stddev", stddev);
    const bool truncated = name == "truncated_normal";
    made =
        truncated ? Initializer::TruncatedNormal(mean, stddev) : Initializer::Normal(mean, stddev);
  } else if (name == "glorot_uniform" || name == "glorot_normal") {
    fields.Take("fan_in", fan_in, 1, kMostFan);
    fields.Take("fan_out", fan_out, 1, kMostFan);
    const auto in = static_cast<int64_t>(fan_in);
    const auto out = static_cast<int64_t>(fan_out);
    made = name == "glorot_uniform" ? Initializer::GlorotUniform(in, out)
                                    : Initializer::GlorotNormal(in, out);
  } else {
    fields.Fail(
        InvalidArgument("{}: unknown initializer '{}': use zeros, ones, constant, uniform, normal, "
                        "truncated_normal, glorot_uniform or glorot_normal",
                        where, name));
  }
  EDL_RETURN_IF_ERROR(fields.Done());
  return made;
}

Result<TableSpec> ReadTable(const json& given, const std::string& where, uint64_t seed) {
  TableSpec table;
  uint64_t dim = 0;
  JsonFields fields(given, where);
  fields.Take("name", table.name);
  fields.Take("dim", dim, 1, kMostDim);
  table.seed = SeedOf(seed, table.name);
  fields.Take("row_seed", table.seed, 0, UINT64_MAX);
  fields.Take("most_bytes", table.most_bytes, 0, UINT64_MAX >> 16);
  fields.Take("evict_after", table.evict_after, 0, UINT32_MAX / 2);
  fields.Take("admit_after", table.admit_after, 0, UINT32_MAX);
  const json* const initializer = fields.Find("initializer");
  const json* const optimizer = fields.Find("optimizer");
  EDL_RETURN_IF_ERROR(fields.Done());
  if (table.name.empty()) return InvalidArgument("{} has no name", where);
  if (dim == 0) return InvalidArgument("{} '{}' has no dim", where, table.name);
  table.dim = dim;
  const std::string here = fmt::format("{} '{}'", where, table.name);
  EDL_ASSIGN_OR_RETURN(table.initializer,
                       ReadInitializer(initializer != nullptr ? *initializer : json::object(),
                                       here + ", its initializer"));
  EDL_ASSIGN_OR_RETURN(
      table.optimizer,
      ReadOptimizer(optimizer != nullptr ? *optimizer : json::object(), here + ", its optimizer"));
  return table;
}

Result<TensorSpec> ReadTensor(const json& given, const std::string& where) {
  TensorSpec tensor;
  uint64_t size = 0;
  JsonFields fields(given, where);
  fields.Take("name", tensor.name);
  fields.Take("size", size, 1, kMostValues);
  const json* const optimizer = fields.Find("optimizer");
  EDL_RETURN_IF_ERROR(fields.Done());
  if (tensor.name.empty()) return InvalidArgument("{} has no name", where);
  if (size == 0) return InvalidArgument("{} '{}' has no size", where, tensor.name);
  tensor.size = size;
  if (optimizer != nullptr && !optimizer->is_null()) {
    EDL_ASSIGN_OR_RETURN(
        tensor.optimizer,
        ReadOptimizer(*optimizer, fmt::format("{} '{}', its optimizer", where, tensor.name)));
  }
  return tensor;
}

// Reads the list in field `name`; `read` parses one element.
template <typename Spec, typename Read>
Status ReadList(JsonFields& fields, const char* name, std::vector<Spec>& specs, const Read& read) {
  const json* const list = fields.Find(name);
  if (list == nullptr) return Ok();
  if (!list->is_array())
    return InvalidArgument("{}: expected a list, found {}", name, list->type_name());
  std::set<std::string> names;
  for (const json& given : *list) {
    EDL_ASSIGN_OR_RETURN(Spec spec, read(given, fmt::format("{}[{}]", name, specs.size())));
    if (spec.name.size() > kLongestName) {
      return InvalidArgument("{}[{}] has a name of {} bytes; the limit is {}", name, specs.size(),
                             spec.name.size(), kLongestName);
    }
    if (!names.insert(spec.name).second) {
      return InvalidArgument("{} has '{}' twice", name, spec.name);
    }
    specs.push_back(std::move(spec));
  }
  return Ok();
}

Result<Consistency> ReadConsistency(const json& given) {
  constexpr uint64_t kMost = std::numeric_limits<int32_t>::max();
  uint64_t gradients = 0;
  uint64_t tolerance = 0;
  Consistency consistency;
  JsonFields fields(given, "consistency");
  fields.Take("gradients", gradients, 0, kMost);
  fields.Take("tolerance", tolerance, 0, kMost);
  fields.Take("modulate", consistency.modulate);
  EDL_RETURN_IF_ERROR(fields.Done());
  // A round of one gradient is the same as no rounds.
  consistency.gradients = gradients < 2 ? 0 : static_cast<uint32_t>(gradients);
  consistency.tolerance = static_cast<uint32_t>(tolerance);
  return consistency;
}

Result<json> Parse(std::string_view text, std::string_view what) {
  Result<json> parsed = ParseJson(text);
  if (!parsed.ok()) return Status(parsed.status()).Within(what);
  return parsed;
}

}  // namespace

Result<Declaration> ParseDeclaration(std::string_view text) {
  EDL_ASSIGN_OR_RETURN(const json parsed, Parse(text, "the declaration"));
  Declaration declaration;
  uint64_t seed = kDefaultSeed;
  JsonFields fields(parsed, "the declaration");
  fields.Take("seed", seed, 0, UINT64_MAX);
  EDL_RETURN_IF_ERROR(ReadList(
      fields, "tables", declaration.tables,
      [&](const json& given, const std::string& where) { return ReadTable(given, where, seed); }));
  EDL_RETURN_IF_ERROR(ReadList(fields, "tensors", declaration.tensors, ReadTensor));
  const json* const consistency = fields.Find("consistency");
  EDL_RETURN_IF_ERROR(fields.Done());
  if (consistency != nullptr) {
    EDL_ASSIGN_OR_RETURN(declaration.consistency, ReadConsistency(*consistency));
  }
  return declaration;
}

std::string ToText(const Declaration& declaration) {
  json tables = json::array();
  for (const TableSpec& table : declaration.tables) {
    tables.push_back({{"name", table.name},
                      {"dim", table.dim},
                      {"initializer", ToJson(table.initializer)},
                      {"optimizer", ToJson(table.optimizer)},
                      {"row_seed", table.seed},
                      {"most_bytes", table.most_bytes},
                      {"evict_after", table.evict_after},
                      {"admit_after", table.admit_after}});
  }
  json tensors = json::array();
  for (const TensorSpec& tensor : declaration.tensors) {
    json written = {{"name", tensor.name}, {"size", tensor.size}};
    if (tensor.optimizer.has_value()) written["optimizer"] = ToJson(*tensor.optimizer);
    tensors.push_back(std::move(written));
  }
  const Consistency& consistency = declaration.consistency;
  return Dump(json{{"consistency",
                    {{"gradients", consistency.gradients},
                     {"tolerance", consistency.tolerance},
                     {"modulate", consistency.modulate}}},
                   {"tables", tables},
                   {"tensors", tensors}});
}

Result<OptimizerOptions> ParseOptimizer(std::string_view text) {
  EDL_ASSIGN_OR_RETURN(const json parsed, Parse(text, "the optimizer"));
  return ReadOptimizer(parsed, "the optimizer");
}

}  // namespace edl::ps
