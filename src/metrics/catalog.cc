#include "metrics/catalog.h"

namespace edl::metrics {

std::span<const Source> Sources() {
  static constexpr std::array kSources = {
      Source{"master", "The master of a job", "job_name", kMasterMetrics},
      Source{"ps", "A parameter server", "job_name index", kPsMetrics},
      Source{"operator", "The operator of TFJobs", "", kOperatorMetrics},
      Source{"process", "Every process", "those of the process", kProcessMetrics},
  };
  return kSources;
}

const Metric* FindMetric(std::string_view name) {
  for (const Source& source : Sources()) {
    for (const Metric* metric : source.metrics) {
      if (metric->name == name) return metric;
      if (metric->type != Type::kHistogram || !name.starts_with(metric->name)) continue;
      const std::string_view suffix = name.substr(metric->name.size());
      if (suffix == "_bucket" || suffix == "_sum" || suffix == "_count") return metric;
    }
  }
  return nullptr;
}

}  // namespace edl::metrics
