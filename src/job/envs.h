#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace edl::job {

// Parses --envs: "A=1,B=x,y,C=2" or a JSON object. A piece that does not begin with NAME= continues
// the value before it, so values may contain commas and '='. As in the published client, a first
// piece "A" sets an empty value, and the last of several values of a name is used; in JSON a
// repeated name is an error. InvalidArgument: the message has the position.
Result<std::map<std::string, std::string>> ParseEnvs(std::string_view text);

// One sentence for each part of `text` that ParseEnvs reads in a way the user may not have meant.
std::vector<std::string> EnvsRemarks(std::string_view text);

// `text` with every value replaced by "***"; only "***" if `text` cannot be parsed.
std::string RedactEnvs(std::string_view text);

}  // namespace edl::job
