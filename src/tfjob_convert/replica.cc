#include "tfjob_convert/replica.h"

#include <algorithm>
#include <set>
#include <string>

#include "tfjob_convert/fields.h"
#include <fmt/ranges.h>

#include "base/text.h"

namespace edl::tfjob_convert {
namespace {

constexpr auto kRestartPolicies =
    std::to_array<std::string_view>({"Always", "OnFailure", "Never", "ExitCode"});
constexpr size_t kLongestRole = 40;

// The container that runs TensorFlow: the one with that name, or the only one. Null: not known.
Json* TensorFlowContainer(Json& spec) {
  Json* containers = ContainersOf(spec);
  if (containers == nullptr) return nullptr;
  for (Json& container : *containers) {
    if (TextOf(container, "name") == kContainerName) return &container;
  }
  return containers->size() == 1 ? &containers->front() : nullptr;
}

bool HasPortNamed(const Json& ports, std::string_view name) {
  return std::ranges::any_of(ports, [&](const Json& port) { return TextOf(port, "name") == name; });
}

Json& PortsOf(Json& container) {
  if (!Has(container, "ports")) container["ports"] = Json::array();
  return container["ports"];
}

void MoveRestartPolicy(Json& spec, const Replica& replica, Notes& notes) {
  Json* pod = Find(spec, "template") == nullptr ? nullptr : Find(spec["template"], "spec");
  if (pod == nullptr || !Has(*pod, "restartPolicy")) return;
  const std::string from = replica.shown() + ".template.spec.restartPolicy";
  if (!Has(spec, "restartPolicy")) {
    Json policy = Take(*pod, "restartPolicy");
    notes.Change("{} -> {}.restartPolicy ({})", from, replica.shown(), Shown(policy));
    if (Find(spec, "restartPolicy") != nullptr) spec.erase("restartPolicy");  // it is null
    AddFirst(spec, "restartPolicy", std::move(policy));
  } else if ((*pod)["restartPolicy"] != spec["restartPolicy"]) {
    const Json policy = Take(*pod, "restartPolicy");
    notes.Change("{} ({}) removed; {}.restartPolicy ({}) counts", from, Shown(policy),
                 replica.shown(), Shown(spec["restartPolicy"]));
  }
}

void NameContainer(Json& spec, const Replica& replica, Notes& notes) {
  Json* containers = ContainersOf(spec);
  if (containers == nullptr || containers->empty()) {
    notes.Warn("{} has no containers, which v1 requires", replica.shown());
    return;
  }
  Json* container = TensorFlowContainer(spec);
  if (container == nullptr) {
    std::vector<std::string> names;
    for (const Json& each : *containers) {
      names.push_back(OneLine(TextOf(each, "name"), kLongestRole));
    }
    notes.Warn("{}: no container is named {}, which v1 requires; rename one of {}", replica.shown(),
               kContainerName, fmt::join(names, ", "));
    return;
  }
  if (TextOf(*container, "name") == kContainerName) return;
  notes.Change("{}: the container '{}' is now named {}", replica.shown(),
               OneLine(TextOf(*container, "name"), kLongestRole), kContainerName);
  if (Find(*container, "name") == nullptr) {
    AddFirst(*container, "name", kContainerName);
  } else {
    (*container)["name"] = kContainerName;
  }
}

// The operator makes a Service with all ports of the container. Its port names may not be missing
// if there are two, and the operator adds tfjob-port.
void NamePorts(Json& spec, const Replica& replica, Notes& notes) {
  Json* container = TensorFlowContainer(spec);
  if (container == nullptr || !Has(*container, "ports")) return;
  Json& ports = (*container)["ports"];
  std::set<std::string> names;
  for (const Json& port : ports) names.insert(TextOf(port, "name"));
  for (Json& port : ports) {
    if (!TextOf(port, "name").empty()) continue;
    const Json* number = Find(port, "containerPort");
    if (number == nullptr || !number->is_number_integer()) continue;
    const int64_t value = number->get<int64_t>();
    std::string name = fmt::format("port-{}", value);
    if (value == kDefaultPort && !names.contains(std::string(kPortName))) name = kPortName;
    if (names.contains(name) && TextOf(port, "protocol") == "UDP") name += "-udp";
    if (!names.insert(name).second) {
      notes.Warn("{}: the container port {} is given twice", replica.shown(), value);
      continue;
    }
    port["name"] = name;
    notes.Change("{}: the container port {} is now named {}", replica.shown(), value, name);
  }
}

}  // namespace

std::string Replica::shown() const { return "spec.tfReplicaSpecs." + OneLine(role, kLongestRole); }

Json* ContainersOf(Json& spec) {
  Json* pod = Find(spec, "template") == nullptr ? nullptr : Find(spec["template"], "spec");
  Json* containers = pod == nullptr ? nullptr : Find(*pod, "containers");
  return containers == nullptr || !containers->is_array() ? nullptr : containers;
}

Status CheckReplica(const Json& spec, const Replica& replica, const Notes& notes) {
  if (!spec.is_object()) {
    return notes.Error(replica.path, "{} must be a map, found {}", replica.shown(), Shown(spec));
  }
  const Json* value = &spec;
  Path path = replica.path;
  for (const char* step : {"template", "spec"}) {
    if (!Has(*value, step)) return Ok();
    value = Find(*value, step);
    path.push_back(step);
    if (!value->is_object()) {
      return notes.Error(path, "{} must be a map, found {}", step, Shown(*value));
    }
  }
  if (!Has(*value, "containers")) return Ok();
  value = Find(*value, "containers");
  path.push_back("containers");
  if (!value->is_array()) {
    return notes.Error(path, "containers must be a list, found {}", Shown(*value));
  }
  for (size_t i = 0; i < value->size(); ++i) {
    const Json& container = (*value)[i];
    const Path here = Below(path, std::to_string(i));
    if (!container.is_object()) {
      return notes.Error(here, "a container must be a map, found {}", Shown(container));
    }
    if (!Has(container, "ports")) continue;
    const Json& ports = *Find(container, "ports");
    if (!ports.is_array() ||
        !std::ranges::all_of(ports, [](const Json& port) { return port.is_object(); })) {
      return notes.Error(Below(here, "ports"), "ports must be a list of maps, found {}",
                         Shown(ports));
    }
  }
  return Ok();
}

void SetPort(Json& spec, const Replica& replica, int64_t port, Notes& notes) {
  if (port == kDefaultPort) {
    notes.Change("{}: tfPort {} removed; it is the default", replica.shown(), port);
    return;
  }
  Json* container = TensorFlowContainer(spec);
  if (container == nullptr) {
    notes.Change("{}: tfPort {} removed", replica.shown(), port);
    notes.Warn("{}: give the container that runs TensorFlow a port named {} with containerPort {}",
               replica.shown(), kPortName, port);
    return;
  }
  notes.Change("{}: tfPort {} -> the container port {}", replica.shown(), port, kPortName);
  Json& ports = PortsOf(*container);
  if (HasPortNamed(ports, kPortName)) return;
  for (Json& each : ports) {
    const Json* number = Find(each, "containerPort");
    if (number != nullptr && *number == port && TextOf(each, "name").empty()) {
      each["name"] = kPortName;
      return;
    }
  }
  ports.push_back({{"name", kPortName}, {"containerPort", port}});
}

void RewriteReplica(Json& spec, const Replica& replica, Notes& notes) {
  MoveRestartPolicy(spec, replica, notes);
  NameContainer(spec, replica, notes);
  NamePorts(spec, replica, notes);
  WarnOfUnknownValue(spec, "restartPolicy", kRestartPolicies, replica.shown(), notes);
  WarnOfUnknownFields(spec, kReplicaFields, {}, replica.shown(), notes);
}

}  // namespace edl::tfjob_convert
