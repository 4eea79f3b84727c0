#include "kube/yaml.h"

#include <algorithm>

#include <yaml-cpp/yaml.h>

#include "kube/yaml_scalar.h"

namespace edl::kube {
namespace {

enum class Quotes { kAlways, kWhereNeeded };

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsLetterOrDigit(char c) { return IsLetter(c) || (c >= '0' && c <= '9'); }

// Whether every reader of YAML takes `text` for text without quotes. May say no although it is so.
bool IsPlainText(std::string_view text) {
  const size_t start = std::min(text.find_first_not_of('-'), text.size());
  if (start == text.size() || start > 2) return false;
  const char first = text[start];
  if (!IsLetter(first) && !(start == 0 && (first == '/' || first == '_'))) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const char next = i + 1 < text.size() ? text[i + 1] : ' ';
    if (c == ' ' || c == ':') {
      if (!IsLetterOrDigit(next) && next != '/' && next != '-') return false;
    } else if (!IsLetterOrDigit(c) &&
               std::string_view("_./-=+$()@").find(c) == std::string_view::npos) {
      return false;
    }
  }
  return !ReadPlainScalar(text).has_value();
}

// Whether `text` can be written as a literal block ("|"). yaml-cpp writes no chomping indicator, so
// the text must end with exactly one newline, which the end of the block stands for.
bool IsLiteralBlock(std::string_view text) {
  if (text.size() < 2 || !text.ends_with('\n') || text.ends_with("\n\n")) return false;
  if (text.front() == ' ' || text.front() == '\n') return false;
  return std::ranges::all_of(text, [](char c) { return c == '\n' || (c >= ' ' && c < 0x7f); });
}

void EmitText(const std::string& text, Quotes quotes, YAML::Emitter& out) {
  if (quotes == Quotes::kWhereNeeded && IsPlainText(text)) {
    out << text;
  } else if (quotes == Quotes::kWhereNeeded && IsLiteralBlock(text)) {
    out << YAML::Literal << text.substr(0, text.size() - 1);
  } else {
    out << YAML::DoubleQuoted << text;
  }
}

void EmitKey(const std::string& key, YAML::Emitter& out) {
  out << YAML::Key;
  if (IsPlainText(key)) {
    out << key;
  } else {
    out << YAML::DoubleQuoted << key;
  }
  out << YAML::Value;
}

template <typename Json>
void EmitYaml(const Json& value, Quotes quotes, YAML::Emitter& out) {
  if (value.is_object() && !value.empty()) {
    out << YAML::BeginMap;
    for (const auto& [key, item] : value.items()) {
      EmitKey(key, out);
      EmitYaml(item, quotes, out);
    }
    out << YAML::EndMap;
  } else if (value.is_array() && !value.empty()) {
    out << YAML::BeginSeq;
    for (const Json& item : value) EmitYaml(item, quotes, out);
    out << YAML::EndSeq;
  } else if (value.is_string()) {
    EmitText(value.template get<std::string>(), quotes, out);
  } else if (value.is_boolean()) {
    out << value.template get<bool>();
  } else if (value.is_number()) {
    out << value.dump();  // the shortest text that is read as the same number
  } else if (value.is_object()) {
    out << YAML::Flow << YAML::BeginMap << YAML::EndMap;
  } else if (value.is_array()) {
    out << YAML::Flow << YAML::BeginSeq << YAML::EndSeq;
  } else {
    out << YAML::Null;
  }
}

template <typename Json>
std::string Emitted(const Json& value, Quotes quotes) {
  YAML::Emitter out;
  EmitYaml(value, quotes, out);
  return std::string(out.c_str(), out.size()) + "\n";
}

}  // namespace

std::string ToYaml(const nlohmann::json& json) { return Emitted(json, Quotes::kAlways); }

std::string ToOrderedYaml(const nlohmann::ordered_json& json) {
  return Emitted(json, Quotes::kWhereNeeded);
}

}  // namespace edl::kube
