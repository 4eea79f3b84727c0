#include "metrics/catalog.h"

#include <regex>
#include <set>
#include <string>

#include "metrics/panels.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace edl::metrics {
namespace {

std::vector<const Metric*> AllMetrics() {
  std::vector<const Metric*> all;
  for (const Source& source : Sources()) {
    all.insert(all.end(), source.metrics.begin(), source.metrics.end());
  }
  return all;
}

// The names in an expression of PromQL that may be those of metrics.
std::set<std::string> NamesIn(std::string_view expression) {
  const std::string text(expression);
  static const std::regex name_pattern("[a-z][a-z0-9]*(?:[_:][a-z0-9]+)+");
  static const std::regex quoted_pattern("\"[^\"]*\"");
  const std::string bare = std::regex_replace(text, quoted_pattern, "\"\"");
  std::set<std::string> names;
  for (std::sregex_iterator at(bare.begin(), bare.end(), name_pattern), end; at != end; ++at) {
    names.insert(at->str());
  }
  // Functions and labels.
  for (const char* other : {"job_name", "task_type", "histogram_quantile", "job_namespace"}) {
    names.erase(other);
  }
  return names;
}

bool IsRecordingRule(const std::string& name) {
  for (const RecordingRule& rule : RecordingRules()) {
    if (rule.name == name) return true;
  }
  return false;
}

std::vector<std::string_view> AllExpressions() {
  std::vector<std::string_view> all;
  for (const Dashboard& dashboard : Dashboards()) {
    for (const Panel& panel : dashboard.panels) {
      for (const Query& query : panel.queries) all.push_back(query.expression);
    }
  }
  for (const RecordingRule& rule : RecordingRules()) all.push_back(rule.expression);
  for (const AlertRule& rule : AlertRules()) all.push_back(rule.expression);
  return all;
}

TEST(Catalog, NamesFollowTheRulesOfPrometheus) {
  const std::regex form("[a-z][a-z0-9_]*");
  for (const Metric* metric : AllMetrics()) {
    const std::string name(metric->name);
    EXPECT_TRUE(std::regex_match(name, form)) << name;
    EXPECT_EQ(name.ends_with("_total"), metric->type == Type::kCounter) << name;
    EXPECT_EQ(name.ends_with("_info"), metric->type == Type::kInfo) << name;
    EXPECT_EQ(metric->type == Type::kHistogram,
              metric->type == Type::kHistogram && metric->unit() == "seconds")
        << name;
    for (const char* bad : {"_ms", "_secs", "_kb", "_mb", "_percent", "milliseconds"}) {
      EXPECT_EQ(name.find(bad), std::string::npos) << name;
    }
    EXPECT_TRUE(metric->help.ends_with('.')) << name;
  }
}

TEST(Catalog, FamiliesAreUnique) {
  std::set<std::string_view> families;
  for (const Metric* metric : AllMetrics()) {
    EXPECT_TRUE(families.insert(metric->family()).second) << metric->name;
  }
}

TEST(Catalog, FindsAMetricAndTheSeriesOfAHistogram) {
  EXPECT_EQ(FindMetric("elasticdl_ps_rows"), &kPsRows);
  EXPECT_EQ(FindMetric("elasticdl_ps_pull_seconds_bucket"), &kPsPullTime);
  EXPECT_EQ(FindMetric("elasticdl_ps_pull_seconds_buckets"), nullptr);
  EXPECT_EQ(FindMetric("elasticdl_ps_rows_bucket"), nullptr);
}

TEST(Panels, UseOnlyMetricsThatExist) {
  for (const std::string_view expression : AllExpressions()) {
    for (const std::string& name : NamesIn(expression)) {
      EXPECT_TRUE(FindMetric(name) != nullptr || IsRecordingRule(name))
          << name << " in " << expression;
    }
  }
}

TEST(Panels, UseEveryMetric) {
  std::set<const Metric*> used;
  for (const std::string_view expression : AllExpressions()) {
    for (const std::string& name : NamesIn(expression)) used.insert(FindMetric(name));
  }
  for (const Metric* metric : AllMetrics()) {
    EXPECT_TRUE(used.contains(metric)) << metric->name;
  }
}

TEST(Panels, TitlesAreUniqueInADashboard) {
  for (const Dashboard& dashboard : Dashboards()) {
    std::set<std::string_view> titles;
    for (const Panel& panel : dashboard.panels) {
      EXPECT_TRUE(titles.insert(panel.title).second) << panel.title;
    }
  }
}

}  // namespace
}  // namespace edl::metrics
