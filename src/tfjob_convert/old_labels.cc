#include "tfjob_convert/old_labels.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"

namespace edl::tfjob_convert {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kOldLabels = {{
    {"group_name", "operator-name"},
    {"group-name", "operator-name"},
    {"tf_job_name", "job-name"},
    {"tf_job_key", "job-name"},
    {"tf-job-name", "job-name"},
    {"tf-job-key", "job-name"},
    {"tf_job_role", "job-role"},
    {"tf-job-role", "job-role"},
    {"job-role", "job-role"},
    {"tf-replica-type", "replica-type"},
    {"replica-type", "replica-type"},
    {"tf-replica-index", "replica-index"},
    {"replica-index", "replica-index"},
    {"job-name", "job-name"},
}};

// Pods of a batch Job have this label too.
constexpr std::string_view kAmbiguous = "job-name";

// The labels that a selector uses: those of a Service, matchLabels and matchExpressions.
std::vector<std::string> LabelsIn(const Json& selector) {
  std::vector<std::string> labels;
  if (!selector.is_object()) return labels;
  for (const auto& [key, value] : selector.items()) {
    if (value.is_string()) labels.push_back(key);
  }
  if (const Json* match = Find(selector, "matchLabels"); match != nullptr && match->is_object()) {
    for (const auto& [key, value] : match->items()) labels.push_back(key);
  }
  if (const Json* match = Find(selector, "matchExpressions"); match != nullptr) {
    for (const Json& expression : *match) labels.push_back(TextOf(expression, "key"));
  }
  return labels;
}

void ReportSelector(const Json& selector, const std::string& where, Notes& notes) {
  std::vector<std::pair<std::string_view, std::string_view>> found;
  for (const std::string& label : LabelsIn(selector)) {
    const auto old = std::ranges::find(kOldLabels, label, &decltype(kOldLabels)::value_type::first);
    if (old != kOldLabels.end()) found.push_back(*old);
  }
  if (found.size() == 1 && found[0].first == kAmbiguous) return;
  for (const auto& [label, now] : found) {
    notes.Warn(
        "{} uses the label {}, which pods of v1 do not have; they have "
        "training.kubeflow.org/{}{}",
        where, label, now, now == "operator-name" ? "=tfjob-controller" : "");
  }
}

void Search(const Json& value, const std::string& where, Notes& notes) {
  if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) {
      Search(value[i], fmt::format("{}[{}]", where, i), notes);
    }
  }
  if (!value.is_object()) return;
  for (const auto& [key, item] : value.items()) {
    if (!item.is_structured()) continue;
    const std::string here = (where.empty() ? "" : where + ".") + OneLine(key, 80);
    if (key == "selector" || key == "labelSelector" || key == "podSelector") {
      ReportSelector(item, here, notes);
    }
    Search(item, here, notes);
  }
}

}  // namespace

void ReportOldLabels(const Json& object, Notes& notes) { Search(object, "", notes); }

}  // namespace edl::tfjob_convert
