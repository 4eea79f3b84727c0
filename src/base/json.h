#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/status.h"

// Instantiated once, in json.cc, so that not every file that uses JSON compiles it.
extern template class nlohmann::basic_json<>;

namespace edl {

// Deeper nested text is rejected, because nlohmann copies, compares and prints recursively and
// could overflow the stack.
inline constexpr int kDeepestJson = 64;

// Parses untrusted text without throwing. InvalidArgument: not JSON, nested deeper than
// kDeepestJson, or a repeated key in an object.
Result<nlohmann::json> ParseJson(std::string_view text);

// The same, with the keys of objects in the order of the text. Takes one from `values_left` for
// each value. ResourceExhausted: none are left.
Result<nlohmann::ordered_json> ParseOrderedJson(std::string_view text, size_t& values_left);

// The same as ParseJson without an error message: returns a discarded value (is_discarded()) if
// `text` is not JSON.
nlohmann::json ReadJson(std::string_view text);

// Like ReadJson, but replaces the values below the level `deepest` by null, whatever they are. For
// answers with many objects: one that is nested deeper must not make the others unreadable.
nlohmann::json ReadJsonDownTo(int deepest, std::string_view text);

// Prints JSON. Bytes that are not UTF-8 are replaced. `indent` < 0: on one line.
std::string Dump(const nlohmann::json& value, int indent = -1);
std::string Dump(const nlohmann::ordered_json& value, int indent = -1);

// A short description of an untrusted value for an error message, at most about 80 bytes.
std::string Excerpt(const nlohmann::json& value);

// A string, number or boolean as text. InvalidArgument: another type.
Result<std::string> ScalarText(const nlohmann::json& value);

// Fields of untrusted JSON. A field that is missing or has another type reads as empty, because the
// server may be newer than this program, or a proxy may have answered.
std::string TextIn(const nlohmann::json& in, const char* name);
int64_t NumberIn(const nlohmann::json& in, const char* name);
bool FlagIn(const nlohmann::json& in, const char* name);

// The field at the end of the path, or JSON null.
const nlohmann::json& FieldAt(const nlohmann::json& in, std::initializer_list<const char*> path);
// The same if it is a list, else an empty list.
const nlohmann::json& ListAt(const nlohmann::json& in, std::initializer_list<const char*> path);

}  // namespace edl
