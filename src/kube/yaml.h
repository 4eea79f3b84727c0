#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/status.h"

namespace edl::kube {

// Converts JSON to YAML that kubectl accepts, with sorted keys and a newline at the end. All texts
// are quoted.
std::string ToYaml(const nlohmann::json& json);

// The same in the order of the keys, as people write it: a text is quoted only if kubectl would
// read it as something else without quotes.
std::string ToOrderedYaml(const nlohmann::ordered_json& json);

// One document of a YAML file.
struct YamlDocument {
  int number = 0;      // from 1; 0: the document has no value and is not counted
  std::string text;    // its part of the file, with the line "---" before it
  int first_line = 1;  // the line of the file in which `text` begins
  // Null: the document has only white space and comments, or is null.
  nlohmann::ordered_json value;
};

// Larger files, and files that are larger after all aliases are replaced, are rejected.
inline constexpr size_t kLargestYaml = size_t{16} << 20;
inline constexpr size_t kMostYamlValues = 500'000;

// Reads all documents of a YAML or JSON file from an untrusted source. Plain scalars have the types
// that kubectl gives them (YAML 1.1: `yes` is a boolean, 0644 is 420), and aliases and the merge
// key `<<` are replaced. The texts of the documents, one after the other, are
// `text`.
//
// InvalidArgument: not YAML, not UTF-8, too large, nested deeper than kDeepestJson, a repeated key,
// or a key or a tag that JSON cannot express. The message begins with
// "document N, line M: ", except for a file that is too large.
Result<std::vector<YamlDocument>> ReadYaml(std::string_view text);

// The line of the file that has the key or list item at this path, or else the nearest one around
// it. List items are numbered from "0".
int LineOf(const YamlDocument& document, std::span<const std::string> path);

}  // namespace edl::kube
