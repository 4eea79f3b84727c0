#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

namespace edl::backend::kubernetes {

// ResourceList of resources by their names ("cpu", "memory", "nvidia.com/gpu"), in thousandths.
using ResourceList = std::map<std::string, int64_t>;

// As the API has them: {"cpu": "250m"}. What cannot be read is left out.
ResourceList ResourceListIn(const nlohmann::json& quantities);

// What a pod, by its spec, takes of its node, with 1 of "pods"; and what it is limited to.
ResourceList RequestsOf(const nlohmann::json& pod);
ResourceList LimitsOf(const nlohmann::json& pod);

// 0 for what is not there.
int64_t AmountOf(const ResourceList& amounts, const std::string& name);
void Add(ResourceList& to, const ResourceList& more, int64_t times);

// "cpu=2, memory=4Gi".
std::string Show(const ResourceList& amounts);

}  // namespace edl::backend::kubernetes
