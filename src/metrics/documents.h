#pragma once

#include <string>
#include <vector>

namespace edl::metrics {

// A file of the repository that is made from the tables of this module.
struct Document {
  std::string path;  // from the root of the repository
  std::string text;
};

// docs/metrics.md, the dashboards in deploy/grafana, and the rules in deploy/prometheus.
std::vector<Document> MakeDocuments();

}  // namespace edl::metrics
