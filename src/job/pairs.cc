#include "job/pairs.h"

#include <set>

#include "base/json.h"
#include "base/text.h"

namespace edl::job {
namespace {

Status CheckDuplicates(const std::vector<Pair>& pairs) {
  std::set<std::string_view> seen;
  for (const Pair& pair : pairs) {
    if (!seen.insert(pair.key).second) {
      return InvalidArgument("'{}'{} is given twice", pair.key, At(pair.key_at));
    }
  }
  return Ok();
}

}  // namespace

std::string At(size_t position) {
  return position == 0 ? "" : fmt::format(" at character {}", position);
}

Result<std::vector<Pair>> ParsePairs(std::string_view text, size_t first) {
  std::vector<Pair> pairs;
  if (Trim(text).empty()) return pairs;
  const auto position = [&](std::string_view part) {
    return first + static_cast<size_t>(part.data() - text.data());
  };
  for (const std::string_view piece : Split(text, ',')) {
    const size_t equals = piece.find('=');
    if (equals == std::string_view::npos) {
      return InvalidArgument("'{}'{}: expected key=value", Trim(piece), At(position(Trim(piece))));
    }
    const std::string_view key = Trim(piece.substr(0, equals));
    const std::string_view value = Trim(piece.substr(equals + 1));
    if (key.empty())
      return InvalidArgument("there is no key before '='{}", At(position(piece) + equals));
    if (value.empty()) {
      return InvalidArgument("'{}'{} has no value", key, At(position(key)));
    }
    pairs.push_back({std::string(key), std::string(value), position(key), position(value)});
  }
  EDL_RETURN_IF_ERROR(CheckDuplicates(pairs));
  return pairs;
}

Result<std::vector<Pair>> ParseJsonPairs(std::string_view text) {
  EDL_ASSIGN_OR_RETURN(const nlohmann::json object, ParseJson(text));
  if (!object.is_object())
    return InvalidArgument("expected a JSON object, found {}", Excerpt(object));
  std::vector<Pair> pairs;
  for (const auto& [key, value] : object.items()) {
    EDL_ASSIGN_OR_RETURN(std::string scalar, ScalarText(value));
    pairs.push_back({key, std::move(scalar)});
  }
  return pairs;
}

}  // namespace edl::job
