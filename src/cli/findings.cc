#include "cli/findings.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "cli/format.h"

namespace edl::cli {
namespace {

using backend::Finding;
using Verdict = Finding::Verdict;

constexpr size_t kVerdictWidth = 13;

Color ColorOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return Color::kGood;
    case Verdict::kMissing:
      return Color::kBad;
    case Verdict::kCannotTell:
      return Color::kDim;
  }
  return Color::kNone;
}

int64_t CountOf(const std::vector<Finding>& findings, Verdict verdict) {
  return std::count_if(findings.begin(), findings.end(),
                       [&](const Finding& one) { return one.verdict == verdict; });
}

}  // namespace

bool IsAnyMissing(const std::vector<Finding>& findings) {
  return CountOf(findings, Verdict::kMissing) > 0;
}

std::string FindingsText(const std::vector<Finding>& findings, UseColor use_color) {
  std::string out;
  for (const Finding& one : findings) {
    const std::string_view verdict = NameOf(one.verdict);
    out += Colored(verdict, ColorOf(one.verdict), use_color) +
           std::string(kVerdictWidth - verdict.size(), ' ') +
           EscapeControlChars(fmt::format("{}: {}", one.what, one.detail)) + "\n";
    if (one.fix.empty()) continue;
    out += fmt::format("{:{}}fix: {}\n", "", kVerdictWidth, EscapeControlChars(one.fix));
  }
  const int64_t missing = CountOf(findings, Verdict::kMissing);
  const int64_t unknown = CountOf(findings, Verdict::kCannotTell);
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
    entry["verdict"] = NameOf(one.verdict);
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
