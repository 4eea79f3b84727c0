#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backend/kubernetes/resource_list.h"
#include "kube/object.h"

namespace edl::backend::kubernetes {

// What the nodes of a cluster have left for pods. An estimate of what the scheduler will find: it
// knows requests, selectors, taints and priorities, not affinities or volumes.
//
// Confined.
class ClusterCapacity {
 public:
  // `pods`: all of the cluster, ended ones too.
  ClusterCapacity(const std::vector<kube::Object>& nodes, const std::vector<kube::Object>& pods);

  // How many nodes take such a pod, whatever else they run: ready, and neither their taints nor
  // the pod's selector is against it.
  int CountNodesFor(const kube::Object& pod) const;
  // Whether one of these is large enough for it.
  bool FitsAlone(const kube::Object& pod) const;
  // The most that one of these has of each resource that the pod asks for.
  ResourceList LargestFor(const kube::Object& pod) const;

  // Puts up to `count` such pods where there is room, and returns how many. Pods of a lower
  // priority give way.
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
