#include "image/build_log.h"

#include <fmt/format.h>

namespace edl::image {
namespace {

constexpr size_t kMostLine = 4096;

// "step 3/6, RUN x" for the rest of "STEP 3/6: RUN x", "Step 3/6 : RUN x" or "[stage 3/6] RUN x".
std::string StepOf(std::string_view text, std::string_view end) {
  const size_t colon = text.find(end);
  if (colon == std::string_view::npos) return "";
  std::string_view count = text.substr(0, colon);
  while (count.ends_with(' ')) count.remove_suffix(1);
  if (const size_t space = count.rfind(' '); space != std::string_view::npos) {
    count.remove_prefix(space + 1);
  }
  if (count.find('/') == std::string_view::npos) return "";
  std::string_view what = text.substr(colon + end.size());
  while (what.starts_with(' ')) what.remove_prefix(1);
  return fmt::format("step {}, {}", count, what);
}

}  // namespace

void BuildLog::Append(std::string_view text) {
  for (const char c : text) {
    if (c == '\n' || c == '\r') {
      ReadLine(line_);
      line_.clear();
    } else if (line_.size() < kMostLine) {
      line_ += c;
    }
  }
}

void BuildLog::ReadLine(std::string_view line) {
  if (line.find_first_not_of(" \t") == std::string_view::npos) return;
  last_ = line;
  if (line.starts_with("STEP ") || line.starts_with("Step ")) {
    const std::string step = StepOf(line.substr(5), ":");
    if (!step.empty()) {
      step_ = step;
      reason_.clear();  // the step before it did not fail
    }
    return;
  }
  if (line.starts_with('#')) {
    ReadNumberedLine(line);
    return;
  }
  if (line.starts_with("Error: building at STEP ") || line.starts_with("error building at STEP ")) {
    // The builder's last line, which repeats the step. An error of the step itself says more.
    const size_t quote = line.rfind("\": ");
    if (reason_.empty() && quote != std::string_view::npos) reason_ = line.substr(quote + 3);
    return;
  }
  for (const std::string_view mark : {"ERROR: ", "Error: ", "error: ", "error ", "denied: "}) {
    if (!line.starts_with(mark)) continue;
    const bool keeps = mark == "denied: " || mark == "error ";
    reason_ = line.substr(keeps ? 0 : mark.size());
  }
}

void BuildLog::ReadNumberedLine(std::string_view line) {
  const size_t space = line.find(' ');
  if (space == std::string_view::npos) return;
  const std::string_view number = line.substr(0, space);
  std::string_view rest = line.substr(space + 1);
  if (rest.starts_with('[')) {
    const std::string step = StepOf(rest.substr(1), "]");
    if (!step.empty()) step_ = numbered_[std::string(number)] = step;
  } else if (rest.starts_with("ERROR: ")) {
    reason_ = rest.substr(7);
    const auto step = numbered_.find(number);
    if (step != numbered_.end()) step_ = step->second;
  }
}

}  // namespace edl::image
