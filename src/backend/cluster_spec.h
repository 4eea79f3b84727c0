#pragma once

#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/status.h"
#include "job/role.h"

namespace edl::backend {

// --cluster_spec_json: adapts pods and services to one cluster, beyond the flags.
//
//   {"pod_spec": {"labels": {...}, "annotations": {...}, "affinity": {...}, "tolerations": [...],
//                 "env": [...]},
//    "worker_pod_spec": {...}, "service_spec": {...},
//    "worker_pod_patch": {...}, "service_patch": {...}}
//
// Entries for one role apply after those for all pods; patches (backend/object_patch.h) apply last.
// `elasticdl train` derives the patches from --cluster_spec=FILE.py.
class ClusterSpec {
 public:
  // Accepts JSON, or base64 of JSON. Empty text changes nothing. InvalidArgument: the message names
  // the key.
  static Result<ClusterSpec> Parse(std::string_view text);

  // Returns `text` as plain JSON, with its patches replaced by these.
  static Result<std::string> WithPatches(std::string_view text,
                                         const std::map<job::Role, nlohmann::json>& pods,
                                         const nlohmann::json& service);

  // Labels and annotations are merged, the affinity is replaced, tolerations and variables (of
  // every container) are appended.
  void AdaptPod(job::Role role, nlohmann::json& pod) const;
  void AdaptService(nlohmann::json& service) const;

 private:
  nlohmann::json all_;                         // for every pod
  std::map<job::Role, nlohmann::json> roles_;  // for the pods of a role
  nlohmann::json service_;
  std::map<job::Role, nlohmann::json> pod_patches_;
  nlohmann::json service_patch_;
};

}  // namespace edl::backend
