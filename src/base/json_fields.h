#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/status.h"

namespace edl {

// Reads the fields of a JSON object that must have the right types, and keeps the first error, so
// that a caller reads all fields and checks once. A field that is missing reads as its default. For
// objects that may be anything there is TextIn and its like in base/json.h.
//
// Confined.
class JsonFields {
 public:
  // `where` names the object in errors. Both `object` and what Find returns are the caller's and
  // outlive it.
  JsonFields(const nlohmann::json& object, std::string where);

  // Each leaves `value` as it is where the field is missing.
  void Take(const char* name, std::string& value);
  void Take(const char* name, bool& value);
  void Take(const char* name, float& value);
  void Take(const char* name, double& value);
  void Take(const char* name, uint64_t& value, uint64_t least, uint64_t most);
  void Take(const char* name, int64_t& value, int64_t least, int64_t most);
  void Take(const char* name, std::vector<std::string>& value);
  void Take(const char* name, std::map<std::string, std::string>& value);

  // The same as values; the default is empty, 0 or false.
  std::string Text(const char* name);
  bool Flag(const char* name);
  int64_t Integer(const char* name, int64_t least = std::numeric_limits<int64_t>::min(),
                  int64_t most = std::numeric_limits<int64_t>::max());
  std::vector<std::string> Texts(const char* name);
  std::map<std::string, std::string> TextMap(const char* name);
  // An object that must be there; an empty one, and an error, where it is not.
  const nlohmann::json& Object(const char* name);

  // The field as it is; null where it is missing.
  const nlohmann::json* Find(const char* name);

  // Keeps `failure` if it is the first.
  void Fail(Status failure);
  // The first error.
  const Status& status() const { return status_; }
  // The first error; a field that nobody has asked for is one.
  Status Done() const;

 private:
  void FailFor(const char* name, const nlohmann::json& given, std::string_view wanted);

  const nlohmann::json& object_;
  const std::string where_;
  std::set<std::string> known_;
  Status status_;
};

}  // namespace edl
