#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace edl::backend::kubernetes {

// The same as YAML that people can read and kubectl takes, keys sorted, with a line end.
std::string ToYaml(const nlohmann::json& json);

}  // namespace edl::backend::kubernetes
