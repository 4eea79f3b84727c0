#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/flags.h"
#include "base/status.h"

namespace edl::reconciler {

// The settings of `elasticdl operator`.
struct OperatorConfig {
  bool help = false;
  std::string ns;  // the namespace whose jobs it runs; empty: all
  std::string kubeconfig;
  std::string metrics_host;
  int metrics_port = 0;  // -1: no metrics
  std::string probe_host;
  int probe_port = 0;  // -1: no probes
  bool leader_elect = false;
  std::string lease_name;
  std::string gang_scheduler;
  std::string shard_service_image;
  int threads = 1;
  double calls_per_second = 0;
  int burst = 0;
};

// The flags have the names of the upstream operator. ParseOperatorFlags also reads their
// environment variables. InvalidArgument: the message names the flag.
FlagTable OperatorFlags();
Result<OperatorConfig> ParseOperatorFlags(const std::vector<std::string>& arguments);

}  // namespace edl::reconciler
