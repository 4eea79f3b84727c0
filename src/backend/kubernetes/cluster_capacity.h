#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backend/kubernetes/resource_list.h"
#include "kube/object.h"

namespace edl::backend::kubernetes {

// Estimates whether the scheduler can place pods on the nodes of a cluster. It considers requests,
// selectors, taints and priorities, but not affinities or volumes.
//
// Confined to the thread that created it. Place changes it; the other methods do not.
class ClusterCapacity {
 public:
  // `pods`: all pods of the cluster, including terminated ones.
  ClusterCapacity(const std::vector<kube::Object>& nodes, const std::vector<kube::Object>& pods);

  // The number of nodes that accept such a pod regardless of free resources: ready nodes that
  // neither their taints nor the selector of the pod exclude.
  int CountNodesFor(const kube::Object& pod) const;
  // Whether one of these nodes is large enough for the pod.
  bool FitsAlone(const kube::Object& pod) const;
  // For each resource that the pod requests, the largest amount on any of these nodes.
  ResourceList LargestFor(const kube::Object& pod) const;

  // Places up to `count` such pods and returns how many fit. Preempts pods of lower priority.
  int Place(const kube::Object& pod, int64_t priority, int count);

 private:
  struct Taken {
    int64_t priority = 0;
    ResourceList amounts;
  };
  struct Node {
    kube::Object object;
    ResourceList allocatable;
    std::vector<Taken> taken;
  };
  static bool Takes(const Node& node, const kube::Object& pod);

  std::vector<Node> nodes_;
};

}  // namespace edl::backend::kubernetes
