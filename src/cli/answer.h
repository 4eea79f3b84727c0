#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "base/flags.h"
#include "cli/platform.h"

namespace edl::cli {

// What a verb says when it has done its work: `text` on a line, or with --output=json the fields.
// Returns the exit code for it.
int Answer(Platform& platform, const FlagValues& flags, const nlohmann::ordered_json& fields,
           const std::string& text);

}  // namespace edl::cli
