#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/status.h"

// Instantiated once, in json.cc: each of the files that use JSON would compile it again.
extern template class nlohmann::basic_json<>;

namespace edl {

// A text that nests deeper is rejected: nlohmann copies, compares and prints by recursion, and the
// stack is finite.
inline constexpr int kDeepestJson = 64;

// Parses text of any origin without throwing. InvalidArgument: not JSON, nested deeper than
// kDeepestJson, or a key that is there twice in an object.
Result<nlohmann::json> ParseJson(std::string_view text);

// The same without an error message: a discarded value (is_discarded()) where `text` is not JSON.
nlohmann::json ReadJson(std::string_view text);

// As text. Bytes that are not UTF-8 are replaced. `indent` below 0: on one line.
std::string Dump(const nlohmann::json& value, int indent = -1);
std::string Dump(const nlohmann::ordered_json& value, int indent = -1);

// A value from outside, for an error message: at most about 80 bytes, whatever it is.
std::string Excerpt(const nlohmann::json& value);

// A string, number or boolean as a flag's text. InvalidArgument for anything else.
Result<std::string> ScalarText(const nlohmann::json& value);

// Fields of JSON that comes from outside. A field that is missing, or has another type, reads as
// empty: a server may be newer than this program, and a proxy answers as it likes.
std::string TextIn(const nlohmann::json& in, const char* name);
int64_t NumberIn(const nlohmann::json& in, const char* name);
bool FlagIn(const nlohmann::json& in, const char* name);

// The field at the end of the path, or null.
const nlohmann::json& FieldAt(const nlohmann::json& in, std::initializer_list<const char*> path);
// The same if it is a list, else an empty one.
const nlohmann::json& ListAt(const nlohmann::json& in, std::initializer_list<const char*> path);

}  // namespace edl
