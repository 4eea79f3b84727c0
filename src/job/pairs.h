#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace edl::job {

// One "key=value" in the text of a flag, and its position there, counted from 1.
struct Pair {
  std::string key;
  std::string value;
  size_t key_at = 0;
  size_t value_at = 0;
};

// Parses "key=value,key=value". White space around keys and values is ignored. `first` is the
// position of the first character of `text` within the whole flag. InvalidArgument: a missing '=',
// an empty key or value, or a repeated key; the message has the position. Empty text has no pairs.
Result<std::vector<Pair>> ParsePairs(std::string_view text, size_t first = 1);

// The pairs of a JSON object of scalars, with key_at and value_at 0. Errors as above.
Result<std::vector<Pair>> ParseJsonPairs(std::string_view text);

// " at character 7", or "" for 0.
std::string At(size_t position);

}  // namespace edl::job
