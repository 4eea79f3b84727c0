#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include <nlohmann/json.hpp>

namespace edl::kube {

// Fields of JSON that comes from outside. What is missing, or of another type than asked for, reads
// as empty: a server may be newer than this program, and a proxy answers as it likes.
std::string TextIn(const nlohmann::json& in, const char* name);
int64_t NumberIn(const nlohmann::json& in, const char* name);
bool FlagIn(const nlohmann::json& in, const char* name);

// The field at the end of the path, or null.
const nlohmann::json& FieldAt(const nlohmann::json& in, std::initializer_list<const char*> path);
// The same if it is a list, else an empty one.
const nlohmann::json& ListAt(const nlohmann::json& in, std::initializer_list<const char*> path);

// As the API takes it. Bytes that are no UTF-8 are replaced.
std::string Dump(const nlohmann::json& what);

}  // namespace edl::kube
