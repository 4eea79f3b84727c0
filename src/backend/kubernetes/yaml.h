#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace edl::backend::kubernetes {

// Converts JSON to YAML that kubectl accepts, with sorted keys and a newline at the end.
std::string ToYaml(const nlohmann::json& json);

}  // namespace edl::backend::kubernetes
