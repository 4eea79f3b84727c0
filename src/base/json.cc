#include "base/json.h"

#include <algorithm>
#include <set>
#include <vector>

template class nlohmann::basic_json<>;

namespace edl {

using nlohmann::json;

namespace {

constexpr size_t kLongestExcerpt = 60;

// Calls visit(part, depth) for each character or escape sequence of the text. The depth is the
// number of open brackets outside of strings; a bracket counts itself. Works on any text; the
// parser rejects text that is not JSON.
template <typename Visit>
void VisitDepths(std::string_view text, const Visit& visit) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const size_t from = i;
    int deepest = depth;
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    }
    visit(text.substr(from, i + 1 - from), deepest);
  }
}

int DepthOf(std::string_view text) {
  int deepest = 0;
  VisitDepths(text, [&](std::string_view, int depth) { deepest = std::max(deepest, depth); });
  return deepest;
}

// `text` with null in place of each list or object below the level `deepest`.
std::string CutBelow(int deepest, std::string_view text) {
  std::string out;
  int before = 0;
  VisitDepths(text, [&](std::string_view part, int depth) {
    if (depth <= deepest) {
      out += part;
    } else if (before <= deepest) {
      out += "null";
    }
    before = depth;
  });
  return out;
}

}  // namespace

Result<json> ParseJson(std::string_view text) {
  if (const int depth = DepthOf(text); depth > kDeepestJson) {
    return InvalidArgument("the JSON is nested {} levels deep; at most {} are allowed", depth,
                           kDeepestJson);
  }
  std::vector<std::set<std::string>> keys;  // of the objects around the current position
  std::string twice;
  const auto watch = [&](int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key) {
      const std::string& key = parsed.get_ref<const std::string&>();
      if (!keys.back().insert(key).second && twice.empty()) twice = key;
    }
    return true;
  };
  try {
    json value = json::parse(text, watch);
    if (!twice.empty()) return InvalidArgument("'{}' is given twice", twice);
    return value;
  } catch (const json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 3: ..."
    const std::string what = error.what();
    const size_t bracket = what.find("] ");
    return InvalidArgument("not JSON: {}",
                           bracket == std::string::npos ? what : what.substr(bracket + 2));
  }
}

json ReadJson(std::string_view text) {
  if (DepthOf(text) > kDeepestJson) return {json::value_t::discarded};
  return json::parse(text, nullptr, /*allow_exceptions=*/false);
}

json ReadJsonDownTo(int deepest, std::string_view text) {
  if (DepthOf(text) <= deepest) return json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json::parse(CutBelow(deepest, text), nullptr, /*allow_exceptions=*/false);
}

std::string Dump(const json& value, int indent) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
}

std::string Dump(const nlohmann::ordered_json& value, int indent) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false,
                    nlohmann::ordered_json::error_handler_t::replace);
}

std::string Excerpt(const json& value) {
  if (value.is_array()) return fmt::format("a list of {} value(s)", value.size());
  if (value.is_object()) return fmt::format("an object of {} key(s)", value.size());
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
  if (text.size() > kLongestExcerpt) text = text.substr(0, kLongestExcerpt) + "...";
  return text;
}

Result<std::string> ScalarText(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean() || value.is_number()) return value.dump();
  return InvalidArgument("expected a string, a number or a boolean, found {}", Excerpt(value));
}

const json& FieldAt(const json& in, std::initializer_list<const char*> path) {
  static const json null;
  const json* at = &in;
  for (const char* name : path) {
    if (!at->is_object()) return null;
    const auto found = at->find(name);
    if (found == at->end()) return null;
    at = &*found;
  }
  return *at;
}

const json& ListAt(const json& in, std::initializer_list<const char*> path) {
  static const json empty = json::array();
  const json& found = FieldAt(in, path);
  return found.is_array() ? found : empty;
}

std::string TextIn(const json& in, const char* name) {
  const json& found = FieldAt(in, {name});
  return found.is_string() ? found.get<std::string>() : "";
}

int64_t NumberIn(const json& in, const char* name) {
  const json& found = FieldAt(in, {name});
  return found.is_number_integer() ? found.get<int64_t>() : 0;
}

bool FlagIn(const json& in, const char* name) {
  const json& found = FieldAt(in, {name});
  return found.is_boolean() && found.get<bool>();
}

}  // namespace edl
