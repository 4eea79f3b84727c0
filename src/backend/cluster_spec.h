#pragma once

#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/status.h"
#include "job/role.h"

namespace edl::backend {

// --cluster_spec_json: how pods and services are adapted to one cluster, beyond what flags say.
//
//   {"pod_spec": {"labels": {...}, "annotations": {...}, "affinity": {...}, "tolerations": [...],
//                 "env": [...]},
//    "worker_pod_spec": {...}, "service_spec": {...},
//    "worker_pod_patch": {...}, "service_patch": {...}}
//
// What is for one role comes after what is for all; patches, as job/object_patch.h has them, come
// last. They are what `elasticdl train` makes of --cluster_spec=FILE.py.
class ClusterSpec {
 public:
  // Plain JSON, or its base64. Empty text changes nothing. InvalidArgument names the key.
  static Result<ClusterSpec> Parse(std::string_view text);

  // The same text, plain, with these patches in place of those that it has.
  static Result<std::string> WithPatches(std::string_view text,
                                         const std::map<job::Role, nlohmann::json>& pods,
                                         const nlohmann::json& service);

  // Labels and annotations are merged, the affinity is replaced, tolerations and variables (of
  // every container) are appended.
  void AdaptPod(job::Role role, nlohmann::json& pod) const;
  void AdaptService(nlohmann::json& service) const;

 private:
  nlohmann::json all_;                         // of every pod
  std::map<job::Role, nlohmann::json> roles_;  // of a role's pods
  nlohmann::json service_;
  std::map<job::Role, nlohmann::json> pod_patches_;
  nlohmann::json service_patch_;
};

}  // namespace edl::backend
