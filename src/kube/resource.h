#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace edl::kube {

// A kind of API object and its REST path. Immutable.
struct Resource {
  std::string_view group;  // empty: the core group
  std::string_view version;
  std::string_view kind;
  std::string_view plural;
  bool namespaced = true;

  // "v1", "coordination.k8s.io/v1".
  std::string api_version() const {
    return group.empty() ? std::string(version) : fmt::format("{}/{}", group, version);
  }
  bool operator==(const Resource&) const = default;
};

inline constexpr Resource kConfigMaps{"", "v1", "ConfigMap", "configmaps"};
inline constexpr Resource kEvents{"", "v1", "Event", "events"};
inline constexpr Resource kNamespaces{"", "v1", "Namespace", "namespaces", false};
inline constexpr Resource kNodes{"", "v1", "Node", "nodes", false};
inline constexpr Resource kPersistentVolumeClaims{"", "v1", "PersistentVolumeClaim",
                                                  "persistentvolumeclaims"};
inline constexpr Resource kPods{"", "v1", "Pod", "pods"};
inline constexpr Resource kResourceQuotas{"", "v1", "ResourceQuota", "resourcequotas"};
inline constexpr Resource kSecrets{"", "v1", "Secret", "secrets"};
inline constexpr Resource kServiceAccounts{"", "v1", "ServiceAccount", "serviceaccounts"};
inline constexpr Resource kServices{"", "v1", "Service", "services"};
inline constexpr Resource kLeases{"coordination.k8s.io", "v1", "Lease", "leases"};
inline constexpr Resource kPriorityClasses{"scheduling.k8s.io", "v1", "PriorityClass",
                                           "priorityclasses", false};
inline constexpr Resource kRoles{"rbac.authorization.k8s.io", "v1", "Role", "roles"};
inline constexpr Resource kRoleBindings{"rbac.authorization.k8s.io", "v1", "RoleBinding",
                                        "rolebindings"};
inline constexpr Resource kStorageClasses{"storage.k8s.io", "v1", "StorageClass", "storageclasses",
                                          false};
inline constexpr Resource kLocalSubjectAccessReviews{
    "authorization.k8s.io", "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews"};
inline constexpr Resource kSelfSubjectAccessReviews{
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", false};

}  // namespace edl::kube
