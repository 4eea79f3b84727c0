#include "backend/kubernetes/resource_list.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/json.h"
#include "base/quantity.h"

namespace edl::backend::kubernetes {
namespace {

using nlohmann::json;

// Containers run together, and so do init containers with restartPolicy Always (sidecars). Other
// init containers run one after another before them.
ResourceList SumOf(const json& pod, const char* kind) {
  ResourceList total = ResourceListIn(FieldAt(pod, {"spec", "overhead"}));
  for (const json& container : ListAt(pod, {"spec", "containers"})) {
    Add(total, ResourceListIn(FieldAt(container, {"resources", kind})), 1);
  }
  ResourceList before;
  for (const json& container : ListAt(pod, {"spec", "initContainers"})) {
    const ResourceList own = ResourceListIn(FieldAt(container, {"resources", kind}));
    if (TextIn(container, "restartPolicy") == "Always") {
      Add(total, own, 1);
      continue;
    }
    for (const auto& [name, amount] : own) before[name] = std::max(before[name], amount);
  }
  for (const auto& [name, amount] : before) total[name] = std::max(total[name], amount);
  return total;
}

}  // namespace

ResourceList ResourceListIn(const json& quantities) {
  ResourceList out;
  if (!quantities.is_object()) return out;
  for (const auto& [name, quantity] : quantities.items()) {
    const auto amount =
        ParseQuantity(quantity.is_string() ? quantity.get<std::string>() : Dump(quantity));
    if (amount.ok()) out[name] = *amount;
  }
  return out;
}

ResourceList RequestsOf(const json& pod) {
  ResourceList out = SumOf(pod, "requests");
  out["pods"] = 1000;
  return out;
}

ResourceList LimitsOf(const json& pod) { return SumOf(pod, "limits"); }

int64_t AmountOf(const ResourceList& amounts, const std::string& name) {
  const auto found = amounts.find(name);
  return found == amounts.end() ? 0 : found->second;
}

void Add(ResourceList& to, const ResourceList& more, int64_t times) {
  for (const auto& [name, amount] : more) to[name] += amount * times;
}

std::string Show(const ResourceList& amounts) {
  std::string out;
  for (const auto& [name, amount] : amounts) {
    const bool bytes = name.ends_with("memory") || name.ends_with("storage");
    out += fmt::format("{}{}={}", out.empty() ? "" : ", ", name,
                       ShowQuantity(amount, bytes ? QuantityUnit::kByte : QuantityUnit::kOne));
  }
  return out.empty() ? "nothing" : out;
}

}  // namespace edl::backend::kubernetes
