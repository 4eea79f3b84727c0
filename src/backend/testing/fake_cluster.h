#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backend/cluster_jobs.h"

namespace edl::backend {

// A namespace of a cluster that keeps what is submitted to it, and whose pods end when a test says
// so. Confined to the test.
class FakeCluster {
 public:
  // Its jobs, for whoever looks at them. This outlives them.
  std::unique_ptr<ClusterJobs> Connect();

  std::vector<Finding> findings;  // what Check finds
  std::vector<Depth> checks;      // how deep it was asked to look, each time
  Templates templates;
  std::map<std::string, Submission> jobs;
  bool running = true;          // whether the masters run
  std::string trouble;          // why they do not
  int left_behind = 0;          // pods of a job whose master does not run
  std::set<std::string> ended;  // jobs whose master's pod has ended
  // Answers a search for a job instead of the cluster, unless it returns Ok.
  std::function<Status()> on_find = [] { return Ok(); };

 private:
  class Jobs;
};

}  // namespace edl::backend
