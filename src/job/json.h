#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/status.h"

namespace edl::job {

// Parses without throwing; a key that is there twice in an object is an error too.
Result<nlohmann::json> ParseJson(std::string_view text);

// A string, number or boolean as a flag's text. InvalidArgument for anything else.
Result<std::string> ScalarText(const nlohmann::json& value);

}  // namespace edl::job
