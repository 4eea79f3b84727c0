#include "backend/cluster_spec.h"

#include <array>
#include <optional>

#include "backend/object_patch.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/text.h"
#include "job/pairs.h"

namespace edl::backend {
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
constexpr std::string_view kPodSpecEnd = "_pod_spec";
constexpr std::string_view kServiceSpec = "service_spec";

constexpr std::string_view kPodPatchEnd = "_pod_patch";
constexpr std::string_view kServicePatch = "service_patch";

// The key of a role: "worker_pod_spec". The last published client of the original calls the master
// "edl-master".
std::optional<job::Role> RoleOfKey(std::string_view key, std::string_view end) {
  if (!key.ends_with(end)) return std::nullopt;
  key.remove_suffix(end.size());
  return key == "edl-master" ? job::Role::kMaster : job::RoleFromName(key);
}

Status CheckPodSpec(const std::string& name, const json& spec) {
  if (!spec.is_object()) return InvalidArgument("{}: expected an object", name);
  for (const auto& [key, value] : spec.items()) {
    const auto* known = std::find_if(kPodKeys.begin(), kPodKeys.end(),
                                     [&key = key](const Key& known) { return known.name == key; });
    if (known == kPodKeys.end()) {
      return InvalidArgument(
          "{}.{}: unknown key; use labels, annotations, affinity, tolerations or "
          "env",
          name, key);
    }
    if (value.type() != known->type) {
      return InvalidArgument("{}.{}: expected {}", name, key, known->type_name);
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

// Empty text is {}.
Result<json> Decode(std::string_view text) {
  text = Trim(text);
  if (text.empty()) return json::object();
  std::string decoded;
  if (!text.starts_with('{')) {
    Result<std::string> bytes = DecodeBase64(text);
    if (!bytes.ok()) return InvalidArgument("expected a JSON object or its base64");
    decoded = *std::move(bytes);
    text = decoded;
  }
  EDL_ASSIGN_OR_RETURN(json parsed, ParseJson(text));
  if (!parsed.is_object())
    return InvalidArgument("expected a JSON object, found {}", parsed.type_name());
  return parsed;
}

}  // namespace

Result<ClusterSpec> ClusterSpec::Parse(std::string_view text) {
  ClusterSpec out;
  EDL_ASSIGN_OR_RETURN(json parsed, Decode(text));
  for (auto& [key, value] : parsed.items()) {
    const std::optional<job::Role> patched = RoleOfKey(key, kPodPatchEnd);
    const bool whole = key == kServiceSpec || key == kServicePatch || patched.has_value();
    if (whole && !value.is_object()) return InvalidArgument("{}: expected an object", key);
    if (whole) {
      (patched.has_value()    ? out.pod_patches_[*patched]
       : key == kServicePatch ? out.service_patch_
                              : out.service_) = std::move(value);
      continue;
    }
    const std::optional<job::Role> role = RoleOfKey(key, kPodSpecEnd);
    if (key != kPodSpec && !role.has_value()) {
      return InvalidArgument(
          "{}: unknown key; use pod_spec, <role>_pod_spec (of master, worker, ps, "
          "chief or evaluator) or service_spec",
          key);
    }
    EDL_RETURN_IF_ERROR(CheckPodSpec(key, value));
    (role.has_value() ? out.roles_[*role] : out.all_) = std::move(value);
  }
  return out;
}

Result<std::string> ClusterSpec::WithPatches(std::string_view text,
                                             const std::map<job::Role, json>& pods,
                                             const json& service) {
  EDL_ASSIGN_OR_RETURN(json spec, Decode(text));
  for (auto it = spec.begin(); it != spec.end();) {
    it = it.key().ends_with(kPodPatchEnd) ? spec.erase(it) : std::next(it);
  }
  for (const auto& [role, patch] : pods) {
    spec[std::string(job::NameOf(role)) + std::string(kPodPatchEnd)] = patch;
  }
  spec[std::string(kServicePatch)] = service;
  return Dump(spec);
}

void ClusterSpec::AdaptPod(job::Role role, json& pod) const {
  Adapt(all_, pod);
  if (const auto own = roles_.find(role); own != roles_.end()) Adapt(own->second, pod);
  if (const auto own = pod_patches_.find(role); own != pod_patches_.end()) {
    ApplyPatch(own->second, pod);
  }
}

void ClusterSpec::AdaptService(json& service) const {
  if (!service_.is_null()) service["spec"].update(service_);
  if (!service_patch_.is_null()) ApplyPatch(service_patch_, service);
}

}  // namespace edl::backend
