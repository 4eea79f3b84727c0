#include "base/json.h"

#include <algorithm>
#include <set>
#include <type_traits>
#include <utility>
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

Status CheckDepth(std::string_view text) {
  const int depth = DepthOf(text);
  if (depth <= kDeepestJson) return Ok();
  return InvalidArgument("the JSON is nested {} levels deep; at most {} are allowed", depth,
                         kDeepestJson);
}

// Builds a value from the events of the parser, in linear time. The library's own parser searches
// all keys of an ordered object for each key, and with a callback it searches each list and object
// for rejected values. Confined.
template <typename Json>
class JsonBuilder : public nlohmann::json_sax<Json> {
 public:
  explicit JsonBuilder(size_t& values_left) : values_left_(values_left) {}

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(int64_t value) override { return Add(value); }
  bool number_unsigned(uint64_t value) override { return Add(value); }
  bool number_float(double value, const std::string& /*text*/) override { return Add(value); }
  bool string(std::string& value) override { return Add(std::move(value)); }
  bool binary(typename Json::binary_t& /*value*/) override { return false; }  // not in text
  bool start_object(size_t /*size*/) override { return Open(Json::object()); }
  bool key(std::string& key) override {
    Level& level = open_.back();
    if (!level.keys.insert(key).second && status_.ok()) {
      status_ = InvalidArgument("'{}' is given twice", key);
    }
    level.key = std::move(key);
    return true;
  }
  bool end_object() override { return Close(); }
  bool start_array(size_t /*size*/) override { return Open(Json::array()); }
  bool end_array() override { return Close(); }
  bool parse_error(size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 3: ..."
    const std::string what = error.what();
    const size_t bracket = what.find("] ");
    status_ = InvalidArgument("not JSON: {}",
                              bracket == std::string::npos ? what : what.substr(bracket + 2));
    return false;
  }

  Result<Json> Take() && {
    if (!status_.ok()) return status_;
    return std::move(root_);
  }

 private:
  // A list or object whose end has not come yet.
  struct Level {
    Json value;
    std::string key = {};  // of the value that comes next
    std::set<std::string> keys = {};
  };

  bool Count() {
    if (values_left_ > 0) {
      --values_left_;
      return true;
    }
    status_ = ResourceExhausted("the JSON has too many values");
    return false;
  }
  bool Open(Json empty) {
    open_.push_back({std::move(empty)});
    return Count();
  }
  bool Close() {
    Json value = std::move(open_.back().value);
    open_.pop_back();
    Put(std::move(value));
    return true;
  }
  bool Add(Json value) {
    Put(std::move(value));
    return Count();
  }
  void Put(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (Level& level = open_.back(); level.value.is_array()) {
      level.value.push_back(std::move(value));
    } else {
      auto& object = level.value.template get_ref<typename Json::object_t&>();
      if constexpr (std::is_same_v<Json, nlohmann::ordered_json>) {
        object.emplace_back(std::move(level.key), std::move(value));
      } else {
        object.emplace(std::move(level.key), std::move(value));
      }
    }
  }

  size_t& values_left_;
  std::vector<Level> open_;
  Json root_;
  Status status_;
};

template <typename Json>
Result<Json> Build(std::string_view text, size_t& values_left) {
  JsonBuilder<Json> builder(values_left);
  Json::sax_parse(text, &builder);
  return std::move(builder).Take();
}

}  // namespace

Result<json> ParseJson(std::string_view text) {
  EDL_RETURN_IF_ERROR(CheckDepth(text));
  size_t values_left = text.size();  // no limit
  return Build<json>(text, values_left);
}

Result<nlohmann::ordered_json> ParseOrderedJson(std::string_view text, size_t& values_left) {
  EDL_RETURN_IF_ERROR(CheckDepth(text));
  return Build<nlohmann::ordered_json>(text, values_left);
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
