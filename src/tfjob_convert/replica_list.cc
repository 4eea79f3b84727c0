#include "tfjob_convert/replica_list.h"

#include "tfjob_convert/fields.h"
#include <fmt/ranges.h>

#include "base/text.h"

namespace edl::tfjob_convert {
namespace {

// What v1alpha1 used for parameter servers without a template.
constexpr std::string_view kDefaultImage = "tensorflow/tensorflow:1.3.0";
constexpr std::string_view kServerProgram = R"(import json, os
import tensorflow as tf
config = json.loads(os.environ["TF_CONFIG"])
server = getattr(tf.train, "Server", None) or tf.distribute.Server
server(config["cluster"], job_name=config["task"]["type"],
       task_index=config["task"]["index"]).join()
)";

constexpr auto kItemFields = std::to_array<std::string_view>(
    {"replicas", "restartPolicy", "template", "tfPort", "tfReplicaType", "isDefaultPS"});

Json ServerTemplate(const std::string& image) {
  return {{"spec",
           {{"containers",
             Json::array({{{"name", kContainerName},
                           {"image", image},
                           {"command", Json::array({"python", "-c", kServerProgram})}}})}}}};
}

// The canonical name of a role in any case; empty: there is no such role.
std::string_view RoleOf(std::string_view type) {
  for (const std::string_view role : kRoles) {
    if (SameLetters(role, type)) return role;
  }
  return "";
}

// Converts one item of the list.
Status ReplaceItem(Json& item, const Replica& replica, const std::string& image, Notes& notes) {
  item.erase("tfReplicaType");
  if (Find(item, "isDefaultPS") != nullptr) {
    item.erase("isDefaultPS");
    notes.Change("{}: isDefaultPS removed", replica.shown());
  }
  if (!Has(item, "template")) {
    if (replica.role != "PS") {
      return notes.Error(replica.path, "the replicas of {} have no template", replica.role);
    }
    item["template"] = ServerTemplate(image);
    notes.Change("{}: template added: a TensorFlow server in the image {}, as v1alpha1 ran",
                 replica.shown(), image);
    if (Find(item, "restartPolicy") == nullptr) {
      AddFirst(item, "restartPolicy", "OnFailure");
      notes.Change("{}: restartPolicy OnFailure added", replica.shown());
    }
  }
  EDL_RETURN_IF_ERROR(CheckReplica(item, replica, notes));
  if (Find(item, "tfPort") == nullptr) return Ok();
  const Json port = Take(item, "tfPort");
  if (port.is_null()) return Ok();
  if (!port.is_number_integer()) {
    return notes.Error(Below(replica.path, "tfPort"), "tfPort must be a number, found {}",
                       Shown(port));
  }
  SetPort(item, replica, port.get<int64_t>(), notes);
  return Ok();
}

// v1 waits for the Chief or Master, or else for worker 0.
void ReplaceTerminationPolicy(const Json& policy, const Json& replicas, Notes& notes) {
  notes.Change("spec.terminationPolicy removed");
  const Json* chief = Find(policy, "chief");
  if (chief == nullptr || !chief->is_object()) return;
  const std::string name = TextOf(*chief, "replicaName");
  const Json* index = Find(*chief, "replicaIndex");
  const bool first = index == nullptr || index->is_null() || *index == 0;
  const std::string_view role = RoleOf(name);
  const bool has_chief = Find(replicas, "Chief") != nullptr || Find(replicas, "Master") != nullptr;
  const bool same = role == "Worker" ? !has_chief : role == "Master" || role == "Chief";
  if (same && first && Find(replicas, role) != nullptr) return;
  notes.Warn("terminationPolicy named {} {}, but v1 ends the job with {}", OneLine(name, 40),
             index == nullptr ? "0" : Shown(*index),
             has_chief ? "its Chief or Master" : "worker 0");
}

void ReplaceSchedulerName(const Json& name, Json& replicas, Notes& notes) {
  if (name.is_null()) return notes.Change("spec.schedulerName removed; it was null");
  std::vector<std::string> roles;
  for (const auto& [role, replica] : replicas.items()) {
    Json* pod = Find(replica, "template") == nullptr ? nullptr : Find(replica["template"], "spec");
    if (pod == nullptr || !pod->is_object() || Has(*pod, "schedulerName")) continue;
    (*pod)["schedulerName"] = name;
    roles.push_back(role);
  }
  if (roles.empty()) {
    return notes.Change("spec.schedulerName ({}) removed; the templates name their schedulers",
                        Shown(name));
  }
  notes.Change("spec.schedulerName ({}) -> template.spec.schedulerName of {}", Shown(name),
               fmt::join(roles, ", "));
}

}  // namespace

Result<std::vector<Replica>> ReplaceReplicaList(Json& spec, Notes& notes) {
  std::vector<Replica> out;
  Json* list = Find(spec, "replicaSpecs");
  if (list == nullptr) return out;
  const Path path = {"spec", "replicaSpecs"};
  if (!list->is_array()) {
    return notes.Error(path, "spec.replicaSpecs must be a list, found {}", Shown(*list));
  }
  if (Find(spec, "tfReplicaSpecs") != nullptr) {
    return notes.Error(path, "spec has both replicaSpecs and tfReplicaSpecs; remove one of them");
  }
  std::string image = TextOf(spec, "tfImage");
  if (image.empty()) image = kDefaultImage;
  Json map = Json::object();
  for (size_t i = 0; i < list->size(); ++i) {
    Json& item = (*list)[i];
    const Path here = Below(path, std::to_string(i));
    const std::string where = fmt::format("spec.replicaSpecs[{}]", i);
    if (!item.is_object()) {
      return notes.Error(here, "{} must be a map, found {}", where, Shown(item));
    }
    FixCase(item, kItemFields, where, notes);
    // v1alpha1's default is MASTER.
    const std::string type = Has(item, "tfReplicaType") ? Shown(item["tfReplicaType"]) : "MASTER";
    const std::string role(RoleOf(type));
    if (role.empty()) {
      return notes.Error(Below(here, "tfReplicaType"), "there is no role '{}'; the roles are {}",
                         type, fmt::join(kRoles, ", "));
    }
    if (Find(map, role) != nullptr) {
      return notes.Error(here, "{} is a second {}; v1 has each role once", where, type);
    }
    out.push_back({.role = role, .path = here});
    notes.Change("{} -> spec.tfReplicaSpecs.{}", where, role);
    EDL_RETURN_IF_ERROR(ReplaceItem(item, out.back(), image, notes));
    map[role] = std::move(item);
  }
  *list = std::move(map);
  Rename(spec, "replicaSpecs", "tfReplicaSpecs");
  return out;
}

void ReplaceOldFields(Json& spec, Notes& notes) {
  Json none = Json::object();
  if (Find(spec, "RuntimeId") != nullptr) {
    Take(spec, "RuntimeId");
    notes.Change("spec.RuntimeId removed; v1 names pods after the job");
  }
  if (Find(spec, "tfImage") != nullptr) {
    Take(spec, "tfImage");
    notes.Change("spec.tfImage removed; the templates name their images");
  }
  if (Find(spec, "terminationPolicy") != nullptr) {
    const Json policy = Take(spec, "terminationPolicy");
    Json* replicas = Find(spec, "tfReplicaSpecs");
    ReplaceTerminationPolicy(policy, replicas == nullptr ? none : *replicas, notes);
  }
  if (Find(spec, "schedulerName") != nullptr) {
    const Json name = Take(spec, "schedulerName");
    Json* replicas = Find(spec, "tfReplicaSpecs");
    ReplaceSchedulerName(name, replicas == nullptr ? none : *replicas, notes);
  }
  for (const char* field : {"tensorboard", "tfRpcLayer"}) {
    if (Find(spec, field) == nullptr) continue;
    Take(spec, field);
    notes.Change("spec.{} removed", field);
    notes.Warn("v1 has nothing that replaces spec.{}", field);
  }
}

}  // namespace edl::tfjob_convert
