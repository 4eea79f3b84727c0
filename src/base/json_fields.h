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

// Reads the fields of a JSON object whose types are checked. Keeps the first error, so that a
// caller reads all fields and checks once. A missing field reads as its default. For objects of
// which any field may have another type, use TextIn and the others in base/json.h.
//
// Confined.
class JsonFields {
 public:
  // `where` names the object in errors. `object` outlives this reader.
  JsonFields(const nlohmann::json& object, std::string where);

  // Each leaves `value` unchanged if the field is missing.
  void Take(const char* name, std::string& value);
  void Take(const char* name, bool& value);
  void Take(const char* name, float& value);
  void Take(const char* name, double& value);
  void Take(const char* name, uint64_t& value, uint64_t least, uint64_t most);
  void Take(const char* name, int64_t& value, int64_t least, int64_t most);
  void Take(const char* name, std::vector<std::string>& value);
  void Take(const char* name, std::map<std::string, std::string>& value);

  // The same, but return the value; the default is empty, 0 or false.
  std::string Text(const char* name);
  bool Flag(const char* name);
  int64_t Integer(const char* name, int64_t least = std::numeric_limits<int64_t>::min(),
                  int64_t most = std::numeric_limits<int64_t>::max());
  std::vector<std::string> Texts(const char* name);
  std::map<std::string, std::string> TextMap(const char* name);
  // A required object. If it is missing: an error, and an empty object.
  const nlohmann::json& Object(const char* name);

  // The field of any type; null if it is missing. Valid as long as `object`.
  const nlohmann::json* Find(const char* name);

  // Records `failure` if it is the first.
  void Fail(Status failure);
  // The first error.
  const Status& status() const { return status_; }
  // The first error. A field of the object that was never read is an error too.
  Status Done() const;

 private:
  void FailFor(const char* name, const nlohmann::json& given, std::string_view wanted);

  const nlohmann::json& object_;
  const std::string where_;
  std::set<std::string> known_;
  Status status_;
};

}  // namespace edl
