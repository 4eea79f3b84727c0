#pragma once

#include <string>

#include "reconciler/tfjob.h"

namespace edl::reconciler {

// The value of TF_CONFIG for a replica. `domain` is appended to host names; empty: none. Returns ""
// for a job with one replica, which trains without a cluster.
//
// The evaluator is part of "cluster", as upstream does it, unless the job has the annotation
// kEvaluatorInCluster: "false". TensorFlow 2's ParameterServerStrategy needs the latter.
std::string ClusterConfig(const TFJob& job, ReplicaType type, int index, const std::string& domain);

// The length of the longest TF_CONFIG of the job's replicas. With dynamic workers: of the workers.
size_t LongestClusterConfig(const TFJob& job, const std::string& domain);

}  // namespace edl::reconciler
