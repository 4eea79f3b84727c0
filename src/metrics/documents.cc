#include "metrics/documents.h"

#include <string_view>
#include <utility>

#include "metrics/catalog.h"
#include "metrics/panels.h"
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace edl::metrics {
namespace {

using nlohmann::ordered_json;

// --- docs/metrics.md ---

constexpr std::string_view kIntroduction = R"(# Metrics

<!-- Made from src/metrics by tools/metrics_files. Change the tables there. -->

The master of a job, parameter servers and the operator of TFJobs serve `/metrics`, in the text
format of Prometheus or, if the client asks for it, in OpenMetrics.

| process | address |
|---|---|
| master | on this machine a free port of 127.0.0.1, which `elasticdl status JOB --output=json` shows as `http_address`; on a cluster port 50002 of its pod |
| parameter server | `elasticdl ps --http_port=N`; on a cluster port 50003 of its pod |
| operator | `--metrics-bind-address`, by default port 8080 |

A job's `/metrics` requires the job's token, which is in the file `token` of the job's folder, or in
the secret of the job on a cluster. `--metrics_without_token` serves it to everyone who reaches the
port, for a Prometheus that scrapes the jobs of many users. The metrics contain names of datasets
and of metrics, and no records.

```yaml
scrape_configs:
  - job_name: elasticdl                     # masters and parameter servers of a cluster
    kubernetes_sd_configs: [{role: pod}]
    relabel_configs:
      - {source_labels: [__meta_kubernetes_pod_label_app], regex: elasticdl, action: keep}
      - {source_labels: [__meta_kubernetes_pod_container_port_name], regex: http-metrics, action: keep}
  - job_name: elasticdl-one-job             # a job on this machine
    authorization: {credentials_file: /home/me/.elasticdl/jobs/deepfm/token}
    static_configs: [{targets: ["127.0.0.1:43211"]}]
```

`deploy/prometheus/elasticdl.rules.yml` has recording and alert rules, and `deploy/grafana` has
dashboards, which use the recording rules. Import them in Grafana and select a Prometheus.
)";

std::string Code(std::string_view text) {
  return text.empty() ? std::string() : fmt::format("`{}`", text);
}

// "`a`, `b`" for "a b".
std::string CodeList(std::string_view words) {
  std::string out;
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(' '));
    words.remove_prefix(std::min(words.size(), word.size() + 1));
    out += (out.empty() ? "" : ", ") + Code(word);
  }
  return out;
}

void AddSource(const Source& source, std::string& out) {
  out += fmt::format("\n## {}\n", source.title);
  if (source.name != "process" && !source.labels.empty()) {
    out += fmt::format("Every metric also has the labels {}.\n", CodeList(source.labels));
  }
  out += "\n| metric | type | labels | meaning |\n|---|---|---|---|\n";
  for (const Metric* metric : source.metrics) {
    out += fmt::format("| `{}` | {} | {} | {} |\n", metric->name, NameOf(metric->type),
                       CodeList(metric->labels), metric->help);
  }
}

std::string MetricsPage() {
  std::string out(kIntroduction);
  for (const Source& source : Sources()) AddSource(source, out);
  out += "\n## Alerts\n\n| alert | meaning | what to do |\n|---|---|---|\n";
  for (const AlertRule& rule : AlertRules()) {
    const auto readable = [](std::string_view text) {
      std::string copy(text);
      for (const auto& [from, to] :
           {std::pair<std::string_view, std::string_view>("{{ $labels.job_name }}", "JOB"),
            {"{{ $labels.index }}", "N"}}) {
        for (size_t at = copy.find(from); at != std::string::npos; at = copy.find(from)) {
          copy.replace(at, from.size(), to);
        }
      }
      return copy;
    };
    out += fmt::format("| `{}` ({}) | {} | {} |\n", rule.name, rule.severity,
                       readable(rule.summary), readable(rule.action));
  }
  return out;
}

// --- deploy/grafana ---

constexpr int kColumns = 24;  // of Grafana's grid
constexpr int kPanelWidth = 8;
constexpr int kPanelHeight = 8;

ordered_json SourceOfPanels() { return {{"type", "prometheus"}, {"uid", "${source}"}}; }

ordered_json GraphJson(const Panel& panel, int id, int x, int y) {
  ordered_json targets = ordered_json::array();
  char reference = 'A';
  for (const Query& query : panel.queries) {
    targets.push_back({{"refId", std::string(1, reference++)},
                       {"datasource", SourceOfPanels()},
                       {"expr", query.expression},
                       {"legendFormat", query.legend}});
  }
  return {
      {"id", id},
      {"type", "timeseries"},
      {"title", panel.title},
      {"datasource", SourceOfPanels()},
      {"gridPos", {{"h", kPanelHeight}, {"w", kPanelWidth}, {"x", x}, {"y", y}}},
      {"fieldConfig", {{"defaults", {{"unit", panel.unit}}}, {"overrides", ordered_json::array()}}},
      {"options",
       {{"legend", {{"displayMode", "list"}, {"placement", "bottom"}}},
        {"tooltip", {{"mode", "multi"}}}}},
      {"targets", std::move(targets)}};
}

ordered_json PanelsJson(const Dashboard& dashboard) {
  ordered_json panels = ordered_json::array();
  std::string_view row;
  int id = 0;
  int x = 0;
  int y = -kPanelHeight;
  for (const Panel& panel : dashboard.panels) {
    if (panel.row != row) {
      row = panel.row;
      y += kPanelHeight;
      panels.push_back({{"id", ++id},
                        {"type", "row"},
                        {"title", row},
                        {"collapsed", false},
                        {"gridPos", {{"h", 1}, {"w", kColumns}, {"x", 0}, {"y", y}}},
                        {"panels", ordered_json::array()}});
      y += 1;
      x = 0;
    } else if (x + kPanelWidth > kColumns) {
      x = 0;
      y += kPanelHeight;
    }
    panels.push_back(GraphJson(panel, ++id, x, y));
    x += kPanelWidth;
  }
  return panels;
}

ordered_json VariablesJson(const Dashboard& dashboard) {
  ordered_json variables = ordered_json::array();
  variables.push_back({{"name", "source"},
                       {"label", "Prometheus"},
                       {"type", "datasource"},
                       {"query", "prometheus"}});
  if (!dashboard.by_job) return variables;
  const char* const jobs = "label_values(elasticdl_job_info, job_name)";
  variables.push_back({{"name", "job_name"},
                       {"label", "Job"},
                       {"type", "query"},
                       {"datasource", SourceOfPanels()},
                       {"definition", jobs},
                       {"query", {{"query", jobs}, {"refId", "jobs"}}},
                       {"refresh", 2},
                       {"sort", 1},
                       {"multi", true},
                       {"includeAll", true},
                       {"current", {{"text", "All"}, {"value", "$__all"}}}});
  return variables;
}

// Grafana's classic format, which all its versions import.
std::string DashboardJson(const Dashboard& dashboard) {
  const ordered_json out = {{"uid", dashboard.id},
                            {"title", dashboard.title},
                            {"tags", {"elasticdl"}},
                            {"schemaVersion", 39},
                            {"editable", true},
                            {"refresh", "15s"},
                            {"time", {{"from", "now-1h"}, {"to", "now"}}},
                            {"templating", {{"list", VariablesJson(dashboard)}}},
                            {"panels", PanelsJson(dashboard)}};
  return out.dump(2) + "\n";
}

// --- deploy/prometheus ---

// In single quotes, YAML has no escapes but the doubled quote.
std::string Quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("''") : std::string(1, c);
  return out + "'";
}

std::string RulesFile() {
  std::string out =
      "# Made from src/metrics by tools/metrics_files. Change the tables there.\n"
      "groups:\n"
      "  - name: elasticdl.rules\n"
      "    rules:\n";
  for (const RecordingRule& rule : RecordingRules()) {
    out +=
        fmt::format("      - record: {}\n        expr: {}\n", rule.name, Quoted(rule.expression));
  }
  out += "  - name: elasticdl.alerts\n    rules:\n";
  for (const AlertRule& rule : AlertRules()) {
    out += fmt::format(
        "      - alert: {}\n"
        "        expr: {}\n"
        "        for: {}\n"
        "        labels:\n"
        "          severity: {}\n"
        "        annotations:\n"
        "          summary: {}\n"
        "          description: {}\n",
        rule.name, Quoted(rule.expression), rule.lasts, rule.severity, Quoted(rule.summary),
        Quoted(rule.action));
  }
  return out;
}

}  // namespace

std::vector<Document> MakeDocuments() {
  std::vector<Document> documents = {
      {"docs/metrics.md", MetricsPage()},
      {"deploy/prometheus/elasticdl.rules.yml", RulesFile()},
  };
  for (const Dashboard& dashboard : Dashboards()) {
    documents.push_back(
        {fmt::format("deploy/grafana/{}", dashboard.file), DashboardJson(dashboard)});
  }
  return documents;
}

}  // namespace edl::metrics
