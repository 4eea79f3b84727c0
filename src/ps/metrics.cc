#include "ps/metrics.h"

#include <array>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

namespace edl::ps {
namespace {

struct Metric {
  std::string_view name;
  std::string_view kind;
  std::string_view help;
  uint64_t LaneStats::*value;
};

constexpr std::array kMetrics = {
    Metric{"rows", "gauge", "Rows of all tables.", &LaneStats::rows},
    Metric{"bytes", "gauge", "Memory of rows, their index and dense blocks.", &LaneStats::bytes},
    Metric{"evicted_rows_total", "counter",
           "Rows that were evicted because of the bounds of their tables.", &LaneStats::evicted},
    Metric{"connections", "gauge", "Open connections of workers.", &LaneStats::connections},
    Metric{"requests_waiting", "gauge",
           "Requests that wait until the master lets the server serve, or until a save has room in "
           "its "
           "buffer.",
           &LaneStats::requests_waiting},
    Metric{"answer_bytes_waiting", "gauge", "Bytes of answers that workers have not received yet.",
           &LaneStats::answer_bytes_waiting},
    Metric{"version", "counter",
           "Optimizer steps: pushes, or synchronous rounds, since the start or the last restore.",
           &LaneStats::version},
    Metric{"least_gradients_total", "counter",
           "Gradients in synchronous rounds: those of the bucket with the fewest.",
           &LaneStats::least_contributed},
    Metric{"most_gradients_total", "counter",
           "Gradients in synchronous rounds: those of the bucket with the most.",
           &LaneStats::most_contributed},
    Metric{"pulls_total", "counter", "Pulls that were answered.", &LaneStats::pulls},
    Metric{"pushes_total", "counter", "Pushes that were answered.", &LaneStats::pushes},
    Metric{"rows_pulled_total", "counter", "Rows in the pulls that were answered.",
           &LaneStats::rows_pulled},
    Metric{"rows_pushed_total", "counter", "Rows in the pushes that were answered.",
           &LaneStats::rows_pushed},
    Metric{"refusals_total", "counter", "Requests that were answered with an error.",
           &LaneStats::refusals},
    Metric{"refused_batches_total", "counter",
           "Batches that were counted but not applied, because their gradients were non-finite.",
           &LaneStats::refused_batches},
    Metric{"waits_for_saves_total", "counter",
           "Times that a push had to wait for room in the buffer of a save.",
           &LaneStats::waits_for_saves},
};

void AddHistogram(std::string_view name, std::string_view help, const std::vector<LaneStats>& lanes,
                  Histogram::Reading LaneStats::*reading, std::string& text) {
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "# HELP elasticdl_ps_{0} {1}\n# TYPE elasticdl_ps_{0} histogram\n", name,
                 help);
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    const Histogram::Reading& read = lanes[lane].*reading;
    uint64_t sum = 0;
    for (size_t i = 0; i < Histogram::kBounds; ++i) {
      sum += read.counts[i];
      fmt::format_to(out, "elasticdl_ps_{}_bucket{{lane=\"{}\",le=\"{:g}\"}} {}\n", name, lane,
                     static_cast<double>(uint64_t{1} << i) * 1e-6, sum);
    }
    fmt::format_to(out, "elasticdl_ps_{}_bucket{{lane=\"{}\",le=\"+Inf\"}} {}\n", name, lane,
                   read.count);
    fmt::format_to(out, "elasticdl_ps_{}_sum{{lane=\"{}\"}} {:g}\n", name, lane,
                   static_cast<double>(read.micros) * 1e-6);
    fmt::format_to(out, "elasticdl_ps_{}_count{{lane=\"{}\"}} {}\n", name, lane, read.count);
  }
}

}  // namespace

std::string MetricsText(const std::vector<LaneStats>& lanes) {
  std::string text;
  const auto out = std::back_inserter(text);
  for (const Metric& metric : kMetrics) {
    fmt::format_to(out, "# HELP elasticdl_ps_{0} {1}\n# TYPE elasticdl_ps_{0} {2}\n", metric.name,
                   metric.help, metric.kind);
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      fmt::format_to(out, "elasticdl_ps_{}{{lane=\"{}\"}} {}\n", metric.name, lane,
                     lanes[lane].*metric.value);
    }
  }
  AddHistogram("pull_seconds", "Time that a lane needed for a pull.", lanes, &LaneStats::pull_times,
               text);
  AddHistogram("push_seconds", "Time that a lane needed for a push.", lanes, &LaneStats::push_times,
               text);
  return text;
}

}  // namespace edl::ps
