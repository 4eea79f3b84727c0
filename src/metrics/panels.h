#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace edl::metrics {

// A line of a panel.
struct Query {
  std::string_view expression;  // PromQL; $job_name is the job that the user selected
  std::string_view legend;      // Grafana's form: "{{role}} {{state}}"
};

// A graph of a dashboard.
struct Panel {
  std::string_view row;  // the heading above it
  std::string_view title;
  std::string_view unit;  // Grafana's name: "short", "s", "bytes", "percentunit", "ops"
  std::vector<Query> queries;
};

// A file in deploy/grafana.
struct Dashboard {
  std::string_view file;  // "elasticdl-jobs.json"
  std::string_view id;    // Grafana replaces the dashboard that has the same
  std::string_view title;
  bool by_job = false;  // has a selection of jobs
  std::vector<Panel> panels;
};
const std::vector<Dashboard>& Dashboards();

// A recording rule, named level:metric:operations.
struct RecordingRule {
  std::string_view name;
  std::string_view expression;
};
std::span<const RecordingRule> RecordingRules();

struct AlertRule {
  std::string_view name;
  std::string_view expression;
  std::string_view lasts;  // how long the expression must be true: "5m"
  std::string_view severity;
  std::string_view summary;  // a sentence; {{ $labels.job_name }} names the job
  std::string_view action;   // what to do
};
std::span<const AlertRule> AlertRules();

}  // namespace edl::metrics
