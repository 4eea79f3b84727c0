#include "kube/json_fields.h"

namespace edl::kube {
namespace {

using nlohmann::json;

}  // namespace

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

std::string Dump(const json& what) {
  return what.dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
}

}  // namespace edl::kube
