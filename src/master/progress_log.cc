#include "master/progress_log.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

#include <fmt/format.h>

#include "base/text.h"

namespace edl::master {
namespace {

constexpr size_t kLongestLine = 16384;

// The whole number directly after `mark`.
std::optional<int64_t> NumberAfter(std::string_view line, std::string_view mark) {
  const size_t at = line.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view digits = line.substr(at + mark.size());
  int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

std::optional<double> RealAfter(std::string_view line, std::string_view mark) {
  const size_t at = line.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string text(line.substr(at + mark.size(), 40));
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return std::nullopt;
  return number;
}

// The metrics in "accuracy = 0.96, global_step = 470, loss = 0.1", except the step.
std::map<std::string, double> MetricsIn(std::string_view text) {
  std::map<std::string, double> metrics;
  for (const std::string& part : SplitList(text)) {
    const size_t at = part.find(" = ");
    if (at == std::string::npos) continue;
    const std::string name = part.substr(0, at);
    const auto value = RealAfter(part, " = ");
    if (value && name != "global_step") metrics[name] = *value;
  }
  return metrics;
}

}  // namespace

bool ProgressLog::Feed(const std::string& source, std::string_view text) {
  std::string& rest = rest_[source];
  rest.append(text);
  bool changed = false;
  size_t start = 0;
  for (size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n', start)) {
    changed = FeedLine(std::string_view(rest).substr(start, end - start)) || changed;
    start = end + 1;
  }
  rest.erase(0, start);
  if (rest.size() > kLongestLine) rest.clear();
  return changed;
}

bool ProgressLog::FeedLine(std::string_view line) {
  if (const auto step = NumberAfter(line, "Saving checkpoints for ")) {
    checkpoint_step_ = std::max(checkpoint_step_, *step);
    return true;
  }
  constexpr std::string_view kEvaluated = "Saving dict for global step ";
  if (const auto step = NumberAfter(line, kEvaluated)) {
    evaluated_step_ = std::max(evaluated_step_, *step);
    const size_t at = line.find(": ", line.find(kEvaluated));
    if (at != std::string_view::npos) {
      evaluation_ = fmt::format("{} (global step {})", line.substr(at + 2), *step);
      logged_.push_back({true, *step, MetricsIn(line.substr(at + 2))});
    }
    return true;
  }
  if (line.find("INFO:tensorflow:") == std::string_view::npos) return false;
  if (line.find(" secs before starting ") != std::string_view::npos) {
    if (const auto wait = RealAfter(line, "Waiting "); wait && std::isfinite(*wait)) {
      ++evaluator_waits_;
      evaluator_wait_secs_ = std::max(*wait, 0.0);
    }
    return false;
  }
  if (line.find("Loss for final step: ") != std::string_view::npos) {
    training_ended_ = true;
    return true;
  }
  return FeedTraining(line);
}

bool ProgressLog::FeedTraining(std::string_view line) {
  const auto loss = RealAfter(line, "loss = ");
  const auto step = NumberAfter(line, "step = ");
  const auto rate = RealAfter(line, "global_step/sec: ");
  Logged logged{.step = step.value_or(-1)};
  if (loss) logged.values["loss"] = *loss;
  if (rate) logged.values["steps_per_s"] = *rate;
  for (const auto& [name, value] : logged.values) metrics_[name] = value;
  if (step) metrics_["step"] = static_cast<double>(*step);
  if (step || !logged.values.empty()) logged_.push_back(std::move(logged));
  return loss.has_value() || step.has_value();
}

void ProgressLog::Restore(int64_t checkpoint_step, int64_t evaluated_step, std::string evaluation) {
  checkpoint_step_ = checkpoint_step;
  evaluated_step_ = evaluated_step;
  evaluation_ = std::move(evaluation);
}

}  // namespace edl::master
