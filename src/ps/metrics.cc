#include "ps/metrics.h"

#include <array>
#include <utility>

#include "metrics/catalog.h"
#include "metrics/process_metrics.h"

#include "base/version.h"

namespace edl::ps {
namespace {

struct LaneNumber {
  const metrics::Metric& metric;
  uint64_t LaneStats::*value;
};

constexpr std::array kNumbers = {
    LaneNumber{metrics::kPsRows, &LaneStats::rows},
    LaneNumber{metrics::kPsMemory, &LaneStats::bytes},
    LaneNumber{metrics::kPsEvicted, &LaneStats::evicted},
    LaneNumber{metrics::kPsConnections, &LaneStats::connections},
    LaneNumber{metrics::kPsRequestsWaiting, &LaneStats::requests_waiting},
    LaneNumber{metrics::kPsAnswersWaiting, &LaneStats::answer_bytes_waiting},
    LaneNumber{metrics::kPsSteps, &LaneStats::version},
    LaneNumber{metrics::kPsLeastGradients, &LaneStats::least_contributed},
    LaneNumber{metrics::kPsMostGradients, &LaneStats::most_contributed},
    LaneNumber{metrics::kPsPulls, &LaneStats::pulls},
    LaneNumber{metrics::kPsPushes, &LaneStats::pushes},
    LaneNumber{metrics::kPsRowsPulled, &LaneStats::rows_pulled},
    LaneNumber{metrics::kPsRowsPushed, &LaneStats::rows_pushed},
    LaneNumber{metrics::kPsRefusals, &LaneStats::refusals},
    LaneNumber{metrics::kPsRefusedBatches, &LaneStats::refused_batches},
    LaneNumber{metrics::kPsWaitsForSaves, &LaneStats::waits_for_saves},
};

struct LaneTimes {
  const metrics::Metric& metric;
  Histogram::Reading LaneStats::*value;
};

constexpr std::array kTimes = {
    LaneTimes{metrics::kPsPullTime, &LaneStats::pull_times},
    LaneTimes{metrics::kPsPushTime, &LaneStats::push_times},
};

// Adds the metrics of one of the tables above, with a sample for each lane.
template <typename Table>
void AddLanes(const Table& table, const std::vector<LaneStats>& lanes, metrics::Exposition& out) {
  for (const auto& [metric, value] : table) {
    out.Begin(metric);
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      out.Add({std::to_string(lane)}, lanes[lane].*value);
    }
  }
}

}  // namespace

std::string MetricsText(const std::vector<LaneStats>& lanes, metrics::Format format,
                        metrics::Labels process_labels) {
  metrics::Exposition out(format, std::move(process_labels));
  out.Begin(metrics::kPsInfo);
  out.Add({kVersion}, uint64_t{1});
  AddLanes(kNumbers, lanes, out);
  AddLanes(kTimes, lanes, out);
  metrics::AddProcess(out);
  return out.Finish();
}

}  // namespace edl::ps
