#include "backend/kubernetes/yaml.h"

#include <yaml-cpp/yaml.h>

namespace edl::backend::kubernetes {
namespace {

using nlohmann::json;

void Emit(const json& value, YAML::Emitter& out) {
  if (value.is_object() && !value.empty()) {
    out << YAML::BeginMap;
    for (const auto& [key, item] : value.items()) {
      out << YAML::Key << key << YAML::Value;
      Emit(item, out);
    }
    out << YAML::EndMap;
  } else if (value.is_array() && !value.empty()) {
    out << YAML::BeginSeq;
    for (const json& item : value) Emit(item, out);
    out << YAML::EndSeq;
  } else if (value.is_string()) {
    // Quoted, so that "0" and "true" stay text.
    out << YAML::DoubleQuoted << value.get<std::string>();
  } else if (value.is_boolean()) {
    out << value.get<bool>();
  } else if (value.is_number_integer()) {
    out << value.get<int64_t>();
  } else if (value.is_number()) {
    out << value.get<double>();
  } else if (value.is_object()) {
    out << YAML::Flow << YAML::BeginMap << YAML::EndMap;
  } else if (value.is_array()) {
    out << YAML::Flow << YAML::BeginSeq << YAML::EndSeq;
  } else {
    out << YAML::Null;
  }
}

}  // namespace

std::string ToYaml(const json& json) {
  YAML::Emitter out;
  Emit(json, out);
  return std::string(out.c_str()) + "\n";
}

}  // namespace edl::backend::kubernetes
