#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace edl::tfjob_convert {

using Json = nlohmann::ordered_json;

// The field of an object; null if `object` is not an object or has no such field.
Json* Find(Json& object, std::string_view key);
const Json* Find(const Json& object, std::string_view key);

// The text of a field; empty if there is none.
std::string TextOf(const Json& object, std::string_view key);

// Whether a field exists and is not null.
bool Has(const Json& object, std::string_view key);

// Renames a key. It keeps its position. REQUIRES: `object` has `from` and not `to`.
void Rename(Json& object, std::string_view from, std::string_view to);

// Adds a field before all others. REQUIRES: `object` does not have it.
void AddFirst(Json& object, std::string_view key, Json value);

// Removes a field and returns its value. REQUIRES: `object` has it.
Json Take(Json& object, std::string_view key);

// A value on one line, shortened, for a note.
std::string Shown(const Json& value);

// Compares ASCII letters without regard to case.
bool SameLetters(std::string_view a, std::string_view b);

}  // namespace edl::tfjob_convert
