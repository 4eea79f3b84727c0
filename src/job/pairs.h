#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace edl::job {

// One "key=value" of a flag's text, and where in it (counted from 1).
struct Pair {
  std::string key;
  std::string value;
  size_t key_at = 0;
  size_t value_at = 0;
};

// Reads "key=value,key=value" with white space around keys and values. `first` is the position of
// text's first character within the whole flag. InvalidArgument points at the spot of a missing
// '=', an empty key or value, and a key that is there twice. Empty text has no pairs.
Result<std::vector<Pair>> ParsePairs(std::string_view text, size_t first = 1);

// The pairs of a JSON object of scalars; key_at and value_at are 0. The same errors.
Result<std::vector<Pair>> ParseJsonPairs(std::string_view text);

// " at character 7", or nothing for 0.
std::string At(size_t position);

}  // namespace edl::job
