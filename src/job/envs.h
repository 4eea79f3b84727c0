#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace edl::job {

// Reads --envs: "A=1,B=x,y,C=2" (a piece that does not begin with NAME= belongs to the value before
// it, so values may hold commas and '='), or a JSON object. As the published client does, it takes
// a first piece "A" for a variable with an empty value, and the last of several values of a name.
// In JSON a name that is there twice is an error. InvalidArgument points at the spot.
Result<std::map<std::string, std::string>> ParseEnvs(std::string_view text);

// What ParseEnvs took in a way that the user may not have meant, a sentence each.
std::vector<std::string> EnvsRemarks(std::string_view text);

// The same text with every value as "***"; "***" altogether when it cannot be read.
std::string RedactEnvs(std::string_view text);

}  // namespace edl::job
