#include "job/job_file.h"

#include <set>

#include <yaml-cpp/yaml.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "job/pairs.h"

namespace edl::job {
namespace {

using nlohmann::json;

std::string LineOf(const YAML::Node& node) {
  return node.Mark().is_null() ? "" : fmt::format(" (line {})", node.Mark().line + 1);
}

Result<json> MapToJson(const YAML::Node& node) {
  json out = json::object();
  for (const auto& entry : node) {
    if (!entry.first.IsScalar() || !(entry.second.IsScalar() || entry.second.IsNull())) {
      return InvalidArgument("the map{} must have only names with plain values", LineOf(node));
    }
    const std::string key = entry.first.Scalar();
    if (out.contains(key)) {
      return InvalidArgument("'{}'{} is given twice", key, LineOf(entry.first));
    }
    out[key] = entry.second.IsNull() ? "" : entry.second.Scalar();
  }
  return out;
}

// The text of a flag for a value of a YAML file: a scalar unchanged, a map or a list as JSON, which
// the parsers of these flags accept too.
Result<std::string> ValueText(const YAML::Node& node) {
  if (node.IsNull()) return std::string();
  if (node.IsScalar()) return node.Scalar();
  if (node.IsMap()) {
    EDL_ASSIGN_OR_RETURN(const json map, MapToJson(node));
    return Dump(map);
  }
  json list = json::array();
  for (const YAML::Node& item : node) {
    if (!item.IsMap()) return InvalidArgument("the list{} must be a list of maps", LineOf(node));
    EDL_ASSIGN_OR_RETURN(json map, MapToJson(item));
    list.push_back(std::move(map));
  }
  return Dump(list);
}

// Whether the value of a flag may be a map or a list.
bool TakesStructure(const FlagSpec& spec) {
  return spec.name == "envs" || spec.name == "volume" || spec.name.ends_with("_resource_request") ||
         spec.name.ends_with("_resource_limit");
}

class Setter {
 public:
  explicit Setter(FlagValues& flags) : flags_(flags) {}

  Result<const FlagSpec*> Find(const std::string& key) {
    EDL_ASSIGN_OR_RETURN(const FlagSpec* spec, flags_.table().Resolve(key));
    if (spec->name == "file")
      return InvalidArgument("'file' is not allowed in a job file; files cannot be nested");
    if (!seen_.insert(spec->name).second) {
      return InvalidArgument("'{}' sets --{}, which is already set in this file", key, spec->name);
    }
    return spec;
  }

  Status Set(const FlagSpec& spec, const std::string& value) {
    return flags_.Set(spec.name, value, FlagSource::kFile);
  }

 private:
  FlagValues& flags_;
  std::set<std::string> seen_;
};

Status SetFromJson(FlagValues& flags, std::string_view text) {
  EDL_ASSIGN_OR_RETURN(const json file, ParseJson(text));
  if (!file.is_object()) return InvalidArgument("expected a map from flags to values");
  Setter setter(flags);
  for (const auto& [key, value] : file.items()) {
    EDL_ASSIGN_OR_RETURN(const FlagSpec* spec, setter.Find(key));
    std::string scalar;
    if (value.is_structured() && TakesStructure(*spec)) {
      scalar = Dump(value);
    } else {
      Result<std::string> plain = ScalarText(value);
      if (!plain.ok()) return plain.status().Within("'" + key + "'");
      scalar = *std::move(plain);
    }
    EDL_RETURN_IF_ERROR(setter.Set(*spec, scalar));
  }
  return Ok();
}

Status SetFromYaml(FlagValues& flags, std::string_view text) {
  const YAML::Node file = YAML::Load(std::string(text));
  if (file.IsNull()) return Ok();
  if (!file.IsMap()) return InvalidArgument("expected a map from flags to values");
  Setter setter(flags);
  for (const auto& entry : file) {
    if (!entry.first.IsScalar()) {
      return InvalidArgument("the key{} must be the name of a flag", LineOf(entry.first));
    }
    const std::string line = LineOf(entry.first);
    Result<const FlagSpec*> spec = setter.Find(entry.first.Scalar());
    if (!spec.ok()) return Status(spec.status().code(), spec.status().message() + line);
    if ((entry.second.IsMap() || entry.second.IsSequence()) && !TakesStructure(**spec)) {
      return InvalidArgument("'{}'{} needs one plain value, not a map or a list",
                             entry.first.Scalar(), line);
    }
    EDL_ASSIGN_OR_RETURN(const std::string value, ValueText(entry.second));
    Status set = setter.Set(**spec, value);
    if (!set.ok()) return Status(set.code(), set.message() + line);
  }
  return Ok();
}

}  // namespace

Status SetFromJobFile(FlagValues& flags, std::string_view text) {
  if (Trim(text).starts_with("{")) return SetFromJson(flags, text);
  try {
    return SetFromYaml(flags, text);
  } catch (const YAML::Exception& error) {
    return InvalidArgument("not YAML: {}", error.what());
  }
}

Result<FlagValues> ParseWithJobFile(const FlagTable& table,
                                    std::span<const std::string> arguments) {
  EDL_ASSIGN_OR_RETURN(FlagValues flags, ParseFlags(table, arguments));
  const std::string& path = flags.String("file");
  if (path.empty()) return flags;
  EDL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  EDL_RETURN_IF_ERROR(SetFromJobFile(flags, text).Within(path));
  return flags;
}

std::string ToJobFile(const FlagValues& flags) {
  json out = json::object();
  for (const FlagSpec& spec : flags.table().specs()) {
    if (spec.name == "file") continue;
    if (spec.type == FlagType::kString) {
      out[spec.name] = flags.String(spec.name);
    } else if (spec.type == FlagType::kInt) {
      out[spec.name] = flags.Int(spec.name);
    } else {
      out[spec.name] = flags.Bool(spec.name);
    }
  }
  return Dump(out, 2) + "\n";
}

}  // namespace edl::job
