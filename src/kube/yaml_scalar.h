#pragma once

#include <optional>
#include <string_view>

#include <nlohmann/json.hpp>

namespace edl::kube {

// The value of a plain (unquoted) YAML scalar as kubectl reads it: null, a boolean or a number.
// nullopt: the scalar is text.
std::optional<nlohmann::ordered_json> ReadPlainScalar(std::string_view text);

}  // namespace edl::kube
