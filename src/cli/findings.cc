#include "cli/findings.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "cli/format.h"

namespace edl::cli {
namespace {

using backend::Finding;
using CheckResult = Finding::CheckResult;

constexpr size_t kResultWidth = 13;

Color ColorOf(CheckResult result) {
  switch (result) {
    case CheckResult::kOk:
      return Color::kGood;
    case CheckResult::kMissing:
      return Color::kBad;
    case CheckResult::kCannotTell:
      return Color::kDim;
  }
  return Color::kNone;
}

int64_t CountOf(const std::vector<Finding>& findings, CheckResult result) {
  return std::count_if(findings.begin(), findings.end(),
                       [&](const Finding& one) { return one.result == result; });
}

}  // namespace

bool IsAnyMissing(const std::vector<Finding>& findings) {
  return CountOf(findings, CheckResult::kMissing) > 0;
}

std::string FindingsText(const std::vector<Finding>& findings, UseColor use_color) {
  std::string out;
  for (const Finding& one : findings) {
    const std::string_view result = NameOf(one.result);
    out += Colored(result, ColorOf(one.result), use_color) +
           std::string(kResultWidth - result.size(), ' ') +
           EscapeControlChars(fmt::format("{}: {}", one.what, one.detail)) + "\n";
    if (one.fix.empty()) continue;
    out += fmt::format("{:{}}fix: {}\n", "", kResultWidth, EscapeControlChars(one.fix));
  }
  const int64_t missing = CountOf(findings, CheckResult::kMissing);
  const int64_t unknown = CountOf(findings, CheckResult::kCannotTell);
  out += missing == 0 ? "Nothing is missing" : fmt::format("{} missing", missing);
  if (unknown > 0) out += fmt::format(", {} could not be checked", unknown);
  return out + ".\n";
}

std::string FindingsJson(const std::vector<Finding>& findings, const std::string& where) {
  nlohmann::ordered_json out;
  out["where"] = where;
  out["ok"] = !IsAnyMissing(findings);
  out["checks"] = nlohmann::ordered_json::array();
  for (const Finding& one : findings) {
    nlohmann::ordered_json entry;
    entry["what"] = one.what;
    entry["verdict"] = NameOf(one.result);
    entry["detail"] = one.detail;
    if (!one.fix.empty()) entry["fix"] = one.fix;
    out["checks"].push_back(std::move(entry));
  }
  return Dump(out, 2) + "\n";
}

Status CheckNothingBlocks(const std::vector<Finding>& findings) {
  std::string message;
  for (const Finding& one : findings) {
    if (!one.blocks) continue;
    message += fmt::format("{}{}: {} (fix: {})", message.empty() ? "" : "; ", one.what, one.detail,
                           one.fix);
  }
  return message.empty() ? Ok() : FailedPrecondition("{}", message);
}

}  // namespace edl::cli
