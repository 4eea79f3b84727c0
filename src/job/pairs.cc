#include "job/pairs.h"

#include <set>

#include "base/json.h"

namespace edl::job {
namespace {

constexpr std::string_view kSpace = " \t\r\n\v\f";

Status CheckDuplicates(const std::vector<Pair>& pairs) {
  std::set<std::string_view> seen;
  for (const Pair& pair : pairs) {
    if (!seen.insert(pair.key).second) {
      return InvalidArgument("'{}'{} is there twice", pair.key, At(pair.key_at));
    }
  }
  return Ok();
}

}  // namespace

std::string At(size_t position) {
  return position == 0 ? "" : fmt::format(" at character {}", position);
}

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return text.substr(text.size());
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

Result<std::vector<Pair>> ParsePairs(std::string_view text, size_t first) {
  std::vector<Pair> pairs;
  if (Trim(text).empty()) return pairs;
  const auto position = [&](std::string_view part) {
    return first + static_cast<size_t>(part.data() - text.data());
  };
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const std::string_view piece = text.substr(begin, comma - begin);
    begin = comma + 1;
    const size_t equals = piece.find('=');
    if (equals == std::string_view::npos) {
      return InvalidArgument("'{}'{} is not of the form key=value", Trim(piece),
                             At(position(Trim(piece))));
    }
    const std::string_view key = Trim(piece.substr(0, equals));
    const std::string_view value = Trim(piece.substr(equals + 1));
    if (key.empty()) return InvalidArgument("nothing before '='{}", At(position(piece) + equals));
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
  if (!object.is_object()) return InvalidArgument("the JSON is not an object");
  std::vector<Pair> pairs;
  for (const auto& [key, value] : object.items()) {
    EDL_ASSIGN_OR_RETURN(std::string scalar, ScalarText(value));
    pairs.push_back({key, std::move(scalar)});
  }
  return pairs;
}

}  // namespace edl::job
