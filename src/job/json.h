#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/status.h"

namespace edl::job {

// A text that nests deeper is refused: nlohmann copies, compares and prints by recursion, and the
// stack is finite.
inline constexpr int kDeepestJson = 64;

// Parses text of any origin without throwing. InvalidArgument: not JSON, nested deeper than
// kDeepestJson, or a key that is there twice in an object.
Result<nlohmann::json> ParseJson(std::string_view text);

// A value from outside, for an error message: at most about 80 bytes, whatever it is.
std::string Excerpt(const nlohmann::json& value);

// A string, number or boolean as a flag's text. InvalidArgument for anything else.
Result<std::string> ScalarText(const nlohmann::json& value);

}  // namespace edl::job
