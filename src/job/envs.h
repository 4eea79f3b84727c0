#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/status.h"

namespace edl::job {

// Reads --envs: "A=1,B=x,y,C=2" (a piece that does not begin with NAME= belongs to the value before
// it, so values may hold commas and '='), or a JSON object. InvalidArgument points at the spot; a
// name that is there twice is an error.
Result<std::map<std::string, std::string>> ParseEnvs(std::string_view text);

// The same text with every value as "***"; "***" altogether when it cannot be read.
std::string RedactEnvs(std::string_view text);

}  // namespace edl::job
