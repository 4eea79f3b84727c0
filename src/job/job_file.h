#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/flags.h"
#include "base/status.h"

namespace edl::job {

// Adds the values of a job file: a YAML or JSON map from flag names (abbreviations too) to values.
// --envs and resources may be maps, --volume a list of maps. InvalidArgument names key and value.
Status SetFromJobFile(FlagValues& flags, std::string_view text);

// Parses arguments, and after them the file that they name with --file, if any. REQUIRES: the table
// has --file.
Result<FlagValues> ParseWithJobFile(const FlagTable& table, std::span<const std::string> arguments);

// Every value of `flags` as such a file. Holds secrets.
std::string ToJobFile(const FlagValues& flags);

}  // namespace edl::job
