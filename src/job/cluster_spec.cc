#include "job/cluster_spec.h"

#include <array>
#include <optional>

#include "base/base64.h"
#include "job/json.h"
#include "job/pairs.h"

namespace edl::job {
namespace {

using nlohmann::json;

struct Key {
  std::string_view name;
  json::value_t type;
  std::string_view type_name;
};
constexpr std::array<Key, 5> kPodKeys = {{{"labels", json::value_t::object, "an object"},
                                          {"annotations", json::value_t::object, "an object"},
                                          {"affinity", json::value_t::object, "an object"},
                                          {"tolerations", json::value_t::array, "a list"},
                                          {"env", json::value_t::array, "a list"}}};

constexpr std::string_view kPodSpec = "pod_spec";
constexpr std::string_view kServiceSpec = "service_spec";

// "worker_pod_spec"; the master was "edl-master" to the last published client.
std::optional<Role> RoleOfKey(std::string_view key) {
  constexpr std::string_view kEnd = "_pod_spec";
  if (!key.ends_with(kEnd)) return std::nullopt;
  key.remove_suffix(kEnd.size());
  return key == "edl-master" ? Role::kMaster : RoleFromName(key);
}

Status CheckPodSpec(const std::string& name, const json& spec) {
  if (!spec.is_object()) return InvalidArgument("{} is not an object", name);
  for (const auto& [key, value] : spec.items()) {
    const auto* known = std::find_if(kPodKeys.begin(), kPodKeys.end(),
                                     [&key = key](const Key& known) { return known.name == key; });
    if (known == kPodKeys.end()) {
      return InvalidArgument(
          "{}.{}: there is no such key; it can be labels, annotations, affinity, tolerations or "
          "env",
          name, key);
    }
    if (value.type() != known->type) {
      return InvalidArgument("{}.{} is not {}", name, key, known->type_name);
    }
  }
  return Ok();
}

void Adapt(const json& spec, json& pod) {
  if (spec.is_null()) return;
  for (const char* key : {"labels", "annotations"}) {
    if (spec.contains(key)) pod["metadata"][key].update(spec[key]);
  }
  if (spec.contains("affinity")) pod["spec"]["affinity"] = spec["affinity"];
  const auto append = [&](const char* key, json& to) {
    if (!spec.contains(key)) return;
    for (const json& item : spec[key]) to[key].push_back(item);
  };
  append("tolerations", pod["spec"]);
  for (json& container : pod["spec"]["containers"]) append("env", container);
}

}  // namespace

Result<ClusterSpec> ClusterSpec::Parse(std::string_view text) {
  ClusterSpec out;
  text = Trim(text);
  if (text.empty()) return out;
  std::string decoded;
  if (!text.starts_with('{')) {
    Result<std::string> bytes = DecodeBase64(text);
    if (!bytes.ok()) return InvalidArgument("it is neither a JSON object nor the base64 of one");
    decoded = *std::move(bytes);
    text = decoded;
  }
  EDL_ASSIGN_OR_RETURN(json parsed, ParseJson(text));
  if (!parsed.is_object()) return InvalidArgument("it is not a JSON object");
  for (auto& [key, value] : parsed.items()) {
    if (key == kServiceSpec) {
      if (!value.is_object()) return InvalidArgument("{} is not an object", key);
      out.service_ = std::move(value);
      continue;
    }
    const std::optional<Role> role = RoleOfKey(key);
    if (key != kPodSpec && !role.has_value()) {
      return InvalidArgument(
          "{}: there is no such key; it can be pod_spec, <role>_pod_spec (of master, worker, ps, "
          "chief or evaluator) or service_spec",
          key);
    }
    EDL_RETURN_IF_ERROR(CheckPodSpec(key, value));
    (role.has_value() ? out.roles_[*role] : out.all_) = std::move(value);
  }
  return out;
}

void ClusterSpec::AdaptPod(Role role, json& pod) const {
  Adapt(all_, pod);
  if (const auto own = roles_.find(role); own != roles_.end()) Adapt(own->second, pod);
}

void ClusterSpec::AdaptService(json& service) const {
  if (!service_.is_null()) service["spec"].update(service_);
}

}  // namespace edl::job
