#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "base/flags.h"
#include "cli/platform.h"

namespace edl::cli {

// Prints the result of a verb: `text` on a line, or `fields` as JSON with --output=json. Returns
// the exit code of success.
int PrintResult(Platform& platform, const FlagValues& flags, const nlohmann::ordered_json& fields,
                const std::string& text);

}  // namespace edl::cli
