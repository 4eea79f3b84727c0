#include "backend/object_patch.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

namespace edl::backend {
namespace {

using nlohmann::json;

// The member that identifies the elements of a list; "" if the list is replaced as a whole.
std::string_view NamingMember(std::string_view list) {
  if (list == "containers" || list == "env" || list == "volumes") return "name";
  return list == "volumeMounts" ? "mountPath" : "";
}

std::string PodNameOf(const json& object) {
  const json empty = json::object();
  const json metadata = object.is_object() ? object.value("metadata", empty) : empty;
  return metadata.is_object() ? metadata.value("name", "") : "";
}

// Creates and applies patches for one object, which has the name of its first container.
class Differ {
 public:
  explicit Differ(std::string pod) : pod_(std::move(pod)) {}

  json Make(const json& from, const json& to) const {
    json patch = json::object();
    for (const auto& [key, value] : to.items()) {
      const auto before = from.find(key);
      if (before == from.end()) {
        patch[key] = MakeValue(key, value.is_array() ? json::array() : json(), value);
      } else if (*before != value) {
        patch[key] = MakeValue(key, *before, value);
      }
    }
    for (const auto& [key, value] : from.items()) {
      if (!to.contains(key)) patch[key] = nullptr;
    }
    return patch;
  }

  void Apply(const json& patch, json& to) const {
    if (!to.is_object()) to = json::object();
    for (const auto& [key, value] : patch.items()) {
      if (value.is_null()) {
        to.erase(key);
      } else if (!value.is_object()) {
        to[key] = value;
      } else if (NamingMember(key).empty()) {
        Apply(value, to[key]);
      } else {
        ApplyList(key, value, to[key]);
      }
    }
  }

 private:
  json MakeValue(const std::string& key, const json& from, const json& to) const {
    if (from.is_object() && to.is_object()) return Make(from, to);
    const bool named = !NamingMember(key).empty() && from.is_array() && to.is_array();
    return named ? MakeList(key, from, to) : to;
  }

  json MakeList(const std::string& key, const json& from, const json& to) const {
    const auto by_name = [&](const json& list) {
      json out = json::object();  // of two with one name the last one counts, as in Kubernetes
      for (const json& element : list) out[NameOf(key, element)] = element;
      return out;
    };
    json patch = Make(by_name(from), by_name(to));
    // The name is already the key, and that of the first container differs between pods.
    for (auto& [name, change] : patch.items()) {
      if (change.is_object()) change.erase(std::string(NamingMember(key)));
    }
    return patch;
  }

  void ApplyList(const std::string& key, const json& patch, json& to) const {
    if (!to.is_array()) to = json::array();
    for (const auto& [name, change] : patch.items()) {
      const auto found = std::find_if(to.begin(), to.end(), [&, &name = name](const json& one) {
        return NameOf(key, one) == name;
      });
      if (change.is_null()) {
        if (found != to.end()) to.erase(found);
        continue;
      }
      json element = found == to.end() ? json::object() : *found;
      Apply(change, element);
      element[std::string(NamingMember(key))] = key == "containers" && name.empty() ? pod_ : name;
      if (found == to.end()) {
        to.push_back(std::move(element));
      } else {
        *found = std::move(element);
      }
    }
  }

  std::string NameOf(const std::string& key, const json& element) const {
    const std::string name =
        element.is_object() ? element.value(std::string(NamingMember(key)), "") : std::string();
    return key == "containers" && name == pod_ ? "" : name;
  }

  const std::string pod_;
};

// The change at the end of the path: null if the patch removes it, nullptr if the patch does not
// contain it.
const json* ChangeAt(const json& patch, std::initializer_list<const char*> path) {
  const json* at = &patch;
  for (const char* name : path) {
    if (!at->is_object()) return at;  // replaced or removed as a whole
    const auto found = at->find(name);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

constexpr std::string_view kOurLabels[] = {"app", "elasticdl-job-name", "elasticdl-replica-type",
                                           "elasticdl-replica-index", "elasticdl-replica-id"};

Status CheckMetadata(const json& patch) {
  for (const char* field : {"name", "namespace", "ownerReferences"}) {
    if (ChangeAt(patch, {"metadata", field}) != nullptr) {
      return InvalidArgument("changes metadata.{}, which the job needs", field);
    }
  }
  for (const std::string_view label : kOurLabels) {
    if (ChangeAt(patch, {"metadata", "labels", std::string(label).c_str()}) != nullptr) {
      return InvalidArgument("changes the label {}, with which the job selects its objects", label);
    }
  }
  return Ok();
}

// Fails if the patch removes elements of a list.
Status CheckNothingRemoved(const json* change, std::string_view what) {
  if (change == nullptr) return Ok();
  if (change->is_null()) return InvalidArgument("removes all {}", what);
  for (const auto& [name, element] : change->items()) {
    if (element.is_null()) return InvalidArgument("removes {} {}", what, name);
  }
  return Ok();
}

}  // namespace

json MakePatch(const json& from, const json& to) { return Differ(PodNameOf(from)).Make(from, to); }

void ApplyPatch(const json& patch, json& object) { Differ(PodNameOf(object)).Apply(patch, object); }

Status CheckPodPatch(const json& patch, const json& pod) {
  EDL_RETURN_IF_ERROR(CheckMetadata(patch));
  const json* container = ChangeAt(patch, {"spec", "containers", ""});
  if (container != nullptr && container->is_null()) {
    return InvalidArgument("removes the container {}, in which the program of the job runs",
                           PodNameOf(pod));
  }
  for (const char* field : {"command", "args", "image"}) {
    const json* change = ChangeAt(patch, {"spec", "containers", "", field});
    if (change != nullptr && change->empty()) {
      return InvalidArgument("removes the {} of container {}", field, PodNameOf(pod));
    }
  }
  EDL_RETURN_IF_ERROR(
      CheckNothingRemoved(ChangeAt(patch, {"spec", "containers", "", "env"}), "variable"));
  EDL_RETURN_IF_ERROR(
      CheckNothingRemoved(ChangeAt(patch, {"spec", "containers", "", "volumeMounts"}), "mount"));
  return CheckNothingRemoved(ChangeAt(patch, {"spec", "volumes"}), "volume");
}

Status CheckServicePatch(const json& patch) {
  EDL_RETURN_IF_ERROR(CheckMetadata(patch));
  for (const char* field : {"selector", "ports"}) {
    if (ChangeAt(patch, {"spec", field}) != nullptr) {
      return InvalidArgument("changes spec.{}, which connections to replicas need", field);
    }
  }
  return Ok();
}

}  // namespace edl::backend
