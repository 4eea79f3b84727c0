#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backend/cluster_jobs.h"

namespace edl::backend {

// A namespace of a cluster that stores what is submitted, and whose pods end when a test says so.
// Confined to the test.
class FakeCluster {
 public:
  // A connection to its jobs. This outlives the connection.
  std::unique_ptr<ClusterJobs> Connect();

  std::vector<Finding> findings;  // the result of Check
  std::vector<Depth> checks;      // the depth of each call of Check
  Templates templates;
  std::map<std::string, Submission> jobs;
  bool running = true;          // whether the masters run
  std::string trouble;          // why they do not run
  int left_behind = 0;          // pods of a job whose master does not run
  std::set<std::string> ended;  // jobs whose master's pod has ended
  // The result of Find, unless it is Ok.
  std::function<Status()> on_find = [] { return Ok(); };

 private:
  class Jobs;
};

}  // namespace edl::backend
