#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/flags.h"
#include "base/status.h"

namespace edl::job {

// Adds the values of a job file: a YAML or JSON map from flag names, which may be abbreviated, to
// values.
// --envs and resources may be maps, --volume a list of maps. InvalidArgument: the message names key
// and value.
Status SetFromJobFile(FlagValues& flags, std::string_view text);

// Parses the arguments, and the file of --file if it is given. REQUIRES: the table has --file.
Result<FlagValues> ParseWithJobFile(const FlagTable& table, std::span<const std::string> arguments);

// All values of `flags` as a job file. It contains secrets.
std::string ToJobFile(const FlagValues& flags);

}  // namespace edl::job
