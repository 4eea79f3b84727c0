#include <algorithm>
#include <optional>
#include <set>
#include <sstream>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "base/json.h"
#include "base/text.h"
#include "base/utf8.h"
#include "kube/yaml.h"
#include "kube/yaml_scalar.h"

namespace edl::kube {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kCoreTag = "tag:yaml.org,2002:";

// A marker at the beginning of a line always separates documents, even inside quotes.
bool IsMarker(std::string_view line) {
  return line.starts_with("---") && (line.size() == 3 || Trim(line.substr(3, 1)).empty());
}

// `text` before each line that separates documents.
std::vector<YamlDocument> SplitDocuments(std::string_view text) {
  std::vector<YamlDocument> documents(1);
  int line_number = 1;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n') + 1);
    const std::string_view rest = line.empty() ? text : line;  // the last line has no newline
    if (IsMarker(rest)) {
      if (!documents.back().text.empty()) documents.emplace_back();
      documents.back().first_line = line_number;
    }
    documents.back().text += rest;
    text.remove_prefix(rest.size());
    ++line_number;
  }
  return documents;
}

// Whether a document has only directives such as %YAML, which precede the first "---".
bool HasOnlyDirectives(std::string_view text) {
  bool directive = false;
  for (const std::string_view line : Split(text, '\n')) {
    if (line.starts_with('%')) {
      directive = true;
    } else if (!Trim(line).empty() && !Trim(line).starts_with('#')) {
      return false;
    }
  }
  return directive;
}

std::string TooLarge() {
  return fmt::format("too large: at most {} values and {} MiB of text, with aliases replaced",
                     kMostYamlValues, kLargestYaml >> 20);
}

// Converts nodes of yaml-cpp to JSON and limits the size of the result, because a few aliases can
// stand for billions of values.
//
// Confined.
class YamlToJson {
 public:
  explicit YamlToJson(int first_line) : first_line_(first_line) {}
  // Continues with the next document. The limits are those of all documents together.
  void set_first_line(int line) { first_line_ = line; }
  size_t& values_left() { return values_left_; }

  Result<ordered_json> Convert(const YAML::Node& node, int depth) {
    const size_t length = node.IsScalar() ? node.Scalar().size() : 0;
    bytes_ += length;
    if (values_left_ == 0 || bytes_ > kLargestYaml) return Error(node, "{}", TooLarge());
    --values_left_;
    if (depth > kDeepestJson) return Error(node, "nested deeper than {} levels", kDeepestJson);
    if (!node.IsDefined() || node.IsNull()) return ordered_json(nullptr);
    if (node.IsScalar()) return Scalar(node);
    if (node.IsMap()) return Map(node, depth);
    ordered_json list = ordered_json::array();
    for (const YAML::Node& item : node) {
      EDL_ASSIGN_OR_RETURN(ordered_json value, Convert(item, depth + 1));
      list.push_back(std::move(value));
    }
    return list;
  }

 private:
  template <typename... Args>
  Status Error(const YAML::Node& at, fmt::format_string<Args...> format, Args&&... args) const {
    return InvalidArgument("line {}: {}", first_line_ + std::max(at.Mark().line, 0),
                           fmt::format(format, std::forward<Args>(args)...));
  }

  Result<ordered_json> Scalar(const YAML::Node& node) const {
    std::string tag = node.Tag();
    const std::string& text = node.Scalar();
    if (tag == "!" || tag == fmt::format("{}str", kCoreTag)) return ordered_json(text);
    const std::optional<ordered_json> value = ReadPlainScalar(text);
    if (tag.empty() || tag == "?") return value.value_or(ordered_json(text));
    if (tag.starts_with(kCoreTag)) tag = "!!" + tag.substr(kCoreTag.size());
    const bool fits = value.has_value() && ((tag == "!!int" && value->is_number_integer()) ||
                                            (tag == "!!float" && value->is_number()) ||
                                            (tag == "!!bool" && value->is_boolean()) ||
                                            (tag == "!!null" && value->is_null()));
    if (!fits) {
      return Error(node, "the tag {} of '{}' is not supported", OneLine(tag, 60),
                   OneLine(text, 60));
    }
    return *value;
  }

  Result<ordered_json> Map(const YAML::Node& node, int depth) {
    ordered_json map = ordered_json::object();
    std::set<std::string> keys;
    std::vector<YAML::Node> merged;
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) return Error(entry.first, "a key must be text");
      const std::string& key = entry.first.Scalar();
      if (key == "<<" && entry.first.Tag() != "!") {
        merged.push_back(entry.second);
        continue;
      }
      if (!keys.insert(key).second) {
        return Error(entry.first, "'{}' is given twice", OneLine(key, 60));
      }
      EDL_ASSIGN_OR_RETURN(ordered_json value, Convert(entry.second, depth + 1));
      // Not map[key], which searches all keys.
      map.get_ref<ordered_json::object_t&>().emplace_back(key, std::move(value));
    }
    for (const YAML::Node& source : merged) EDL_RETURN_IF_ERROR(Merge(source, depth, keys, map));
    return map;
  }

  // Adds the entries of the map, or of the maps in the list, that `map` does not have.
  Status Merge(const YAML::Node& source, int depth, std::set<std::string>& keys,
               ordered_json& map) {
    EDL_ASSIGN_OR_RETURN(ordered_json value, Convert(source, depth + 1));
    if (!value.is_array()) value = ordered_json::array({std::move(value)});
    for (const ordered_json& item : value) {
      if (!item.is_object()) return Error(source, "the value of '<<' must be a map");
      for (const auto& [key, field] : item.items()) {
        if (!keys.insert(key).second) continue;
        map.get_ref<ordered_json::object_t&>().emplace_back(key, field);
      }
    }
    return Ok();
  }

  int first_line_;
  size_t values_left_ = kMostYamlValues;
  size_t bytes_ = 0;
};

// The document as JSON. InvalidArgument: it is not JSON; it may be YAML. ResourceExhausted: it has
// more values than `values_left`.
Result<ordered_json> ReadAsJson(std::string_view text, size_t& values_left) {
  if (IsMarker(text)) text.remove_prefix(3);
  text = Trim(text);
  if (text.starts_with('#')) text = Trim(text.substr(std::min(text.find('\n'), text.size())));
  if (!text.starts_with('{') && !text.starts_with('[')) return InvalidArgument("not JSON");
  size_t left = values_left;
  EDL_ASSIGN_OR_RETURN(ordered_json value, ParseOrderedJson(text, left));
  values_left = left;
  return value;
}

// Records where the last document starts and ignores its content.
//
// Confined.
class DocumentStart : public YAML::EventHandler {
 public:
  [[nodiscard]] int line() const { return line_; }

  void OnDocumentStart(const YAML::Mark& mark) override { line_ = mark.line; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnAlias(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnScalar(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                const std::string& /*value*/) override {}
  void OnSequenceStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/,
                       YAML::anchor_t /*anchor*/, YAML::EmitterStyle::value /*style*/) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {}
  void OnMapEnd() override {}

 private:
  int line_ = 0;
};

// The line, from 0, of text that follows the first document. nullopt: none follows.
// Not YAML::LoadAll: yaml-cpp reads a comma after a document as empty documents without end.
std::optional<int> LineAfterFirstDocument(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStart start;
  if (!parser.HandleNextDocument(start) || !parser.HandleNextDocument(start)) return std::nullopt;
  return std::max(start.line(), 0);
}

Result<ordered_json> ReadOne(const YamlDocument& document, YamlToJson& converter) {
  if (HasOnlyDirectives(document.text)) return ordered_json(nullptr);
  Result<ordered_json> json = ReadAsJson(document.text, converter.values_left());
  if (json.ok()) return json;
  if (json.status().code() == Code::kResourceExhausted) {
    return InvalidArgument("line {}: {}", document.first_line, TooLarge());
  }
  try {
    if (const std::optional<int> line = LineAfterFirstDocument(document.text)) {
      return InvalidArgument(
          "line {}: more text follows the end of the document; put a line '---' "
          "between documents",
          document.first_line + *line);
    }
    converter.set_first_line(document.first_line);
    return converter.Convert(YAML::Load(document.text), 1);
  } catch (const YAML::Exception& error) {
    return InvalidArgument("line {}: not YAML: {}",
                           document.first_line + std::max(error.mark.line, 0), error.msg);
  }
}

}  // namespace

Result<std::vector<YamlDocument>> ReadYaml(std::string_view text) {
  if (text.size() > kLargestYaml) {
    return InvalidArgument("the file has {} bytes; at most {} are allowed", text.size(),
                           kLargestYaml);
  }
  std::vector<YamlDocument> documents = SplitDocuments(text);
  YamlToJson converter(1);
  int number = 0;
  for (YamlDocument& document : documents) {
    if (!IsUtf8(document.text) || document.text.find('\0') != std::string::npos) {
      return InvalidArgument("document {}, line {}: the text is not UTF-8, or has a zero byte",
                             number + 1, document.first_line);
    }
    Result<ordered_json> value = ReadOne(document, converter);
    if (!value.ok()) {
      return InvalidArgument("document {}, {}", number + 1, value.status().message());
    }
    document.value = *std::move(value);
    document.number = document.value.is_null() ? 0 : ++number;
  }
  return documents;
}

int LineOf(const YamlDocument& document, std::span<const std::string> path) {
  int line = 0;
  try {
    YAML::Node node = YAML::Load(document.text);
    line = node.Mark().line;
    for (const std::string& step : path) {
      bool found = false;
      size_t index = 0;
      for (YAML::const_iterator entry = node.begin(); !found && entry != node.end(); ++entry) {
        const bool in_map = node.IsMap();
        found = in_map ? entry->first.IsScalar() && entry->first.Scalar() == step
                       : std::to_string(index++) == step;
        if (!found) continue;
        line = (in_map ? entry->first : YAML::Node(*entry)).Mark().line;
        // Not node = ..., which would change the document.
        node.reset(in_map ? entry->second : YAML::Node(*entry));
      }
      if (!found) break;
    }
  } catch (const YAML::Exception&) {
    // JSON that yaml-cpp does not read: the line is not known.
    return document.first_line;
  }
  return document.first_line + std::max(line, 0);
}

}  // namespace edl::kube
