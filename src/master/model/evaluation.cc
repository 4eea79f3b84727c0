#include "master/model/evaluation.h"

#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"

namespace edl::master {
namespace {

using nlohmann::json;

constexpr size_t kLongestText = 4096;
constexpr size_t kMostMetrics = 100;
constexpr size_t kLongestName = 200;

Status NotAnEvaluation(const std::string& why) {
  return InvalidArgument(
      "the result of evaluation_merge is not {{\"text\": ..., \"metrics\": {{name: number}}}}: {}",
      why);
}

Status AddMetric(const std::string& name, const json& value, job::EvaluationView& out) {
  if (!value.is_number() && !value.is_null()) {
    return NotAnEvaluation(
        fmt::format("metric '{}' is not a number", name.substr(0, kLongestName)));
  }
  if (name.size() > kLongestName) {
    return NotAnEvaluation(fmt::format("the name of a metric has {} bytes, at most {} are allowed",
                                       name.size(), kLongestName));
  }
  out.metrics[name] =
      value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
  if (out.metrics.size() > kMostMetrics) {
    return NotAnEvaluation(fmt::format("it has more than {} metrics", kMostMetrics));
  }
  return Ok();
}

}  // namespace

Result<job::EvaluationView> ParseEvaluation(int64_t version, std::string_view result) {
  const json in = ReadJson(result);
  if (!in.is_object()) return NotAnEvaluation("it is not a JSON object");
  const auto text = in.find("text");
  if (text == in.end() || !text->is_string()) return NotAnEvaluation("'text' is not a string");
  const auto metrics = in.find("metrics");
  if (metrics == in.end() || !metrics->is_object()) {
    return NotAnEvaluation("'metrics' is not an object");
  }
  job::EvaluationView out{.version = version,
                          .text = OneLine(text->get<std::string>(), kLongestText)};
  for (const auto& [name, value] : metrics->items()) {
    if (!value.is_object()) {
      EDL_RETURN_IF_ERROR(AddMetric(name, value, out));
      continue;
    }
    for (const auto& [inner, number] : value.items()) {
      EDL_RETURN_IF_ERROR(AddMetric(name + "." + inner, number, out));
    }
  }
  return out;
}

std::string Describe(const job::EvaluationView& evaluation) {
  std::string out;
  for (const auto& [name, value] : evaluation.metrics) {
    out += fmt::format("{}{} = {:.6g}", out.empty() ? "" : ", ", name, value);
  }
  if (out.empty()) out = evaluation.text;
  return fmt::format("{} (version {})", out, evaluation.version);
}

}  // namespace edl::master
