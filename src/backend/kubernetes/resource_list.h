#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

namespace edl::backend::kubernetes {

// Amounts of resources by name ("cpu", "memory", "nvidia.com/gpu"), in thousandths.
using ResourceList = std::map<std::string, int64_t>;

// Parses the format of the API: {"cpu": "250m"}. Skips invalid quantities.
ResourceList ResourceListIn(const nlohmann::json& quantities);

// What a pod requests from its node, including 1 of "pods"; and its limits.
ResourceList RequestsOf(const nlohmann::json& pod);
ResourceList LimitsOf(const nlohmann::json& pod);

// 0 if the list does not contain `name`.
int64_t AmountOf(const ResourceList& amounts, const std::string& name);
void Add(ResourceList& to, const ResourceList& more, int64_t times);

// "cpu=2, memory=4Gi".
std::string Show(const ResourceList& amounts);

}  // namespace edl::backend::kubernetes
