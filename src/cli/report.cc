#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "cli/format.h"
#include "cli/job_master.h"
#include "cli/job_snapshot.h"
#include "cli/job_store.h"
#include "cli/sparkline.h"
#include "cli/summary.h"
#include "cli/verbs.h"

namespace edl::cli {
namespace {

using namespace std::chrono_literals;

constexpr size_t kMostColumns = 60;

Result<telemetry::Curves> CurvesOf(Platform& platform, const JobFolder& folder,
                                   const telemetry::Query& query) {
  return AskMasterOrReadLedger<telemetry::Curves>(
      platform, folder,
      [&](client::MasterClient& master) { return master.GetTelemetry(query, 30s); },
      [&](const std::filesystem::path& ledger) {
        return platform.local.read_ledger_curves(ledger, query);
      });
}

// NotFound: the job has no series of one of these names.
Status CheckNames(const std::vector<std::string>& names, const telemetry::Curves& curves,
                  const std::string& job) {
  for (const std::string& name : names) {
    if (std::ranges::find(curves.series, name, &telemetry::Curve::name) == curves.series.end()) {
      return NotFound("job {0} has no series '{1}'; elasticdl report {0} lists all of them", job,
                      name);
    }
  }
  return Ok();
}

// What the locale of the terminal can show.
Glyphs GlyphsOf(const Platform& platform) {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = platform.variable(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view locale(value);
    const bool is_utf8 = locale.find("UTF-8") != std::string_view::npos ||
                         locale.find("utf8") != std::string_view::npos;
    return is_utf8 ? Glyphs::kUnicode : Glyphs::kAscii;
  }
  return Glyphs::kAscii;
}

std::string ValueText(double value, const std::string& unit) {
  if (unit == "bytes") return fmt::format("{:.1f} MiB", value / (1 << 20));
  constexpr double kLargeNumber = 1000;
  constexpr double kLargestCount = 1e15;
  if (std::abs(value) >= kLargeNumber && std::abs(value) < kLargestCount) {
    return Count(std::llround(value));
  }
  return fmt::format("{:.4g}", value);
}

std::vector<std::string> RowOf(const telemetry::Curve& curve, const TimeColumns& columns,
                               Glyphs glyphs) {
  telemetry::Point all;
  for (const telemetry::Curve::Point& point : curve.points) all.Merge(point.values);
  std::vector<std::string> row = {EscapeControlChars(curve.name),
                                  Sparkline(curve.points, columns, glyphs)};
  for (const float value : {all.last, all.min, all.max}) {
    row.push_back(all.count > 0 ? ValueText(value, curve.unit) : "-");
  }
  row.push_back(curve.unit == "bytes" ? "" : EscapeControlChars(curve.unit));
  return row;
}

std::string CurveTable(const telemetry::Curves& curves, Glyphs glyphs) {
  if (curves.series.empty()) return "\nNo curves yet.\n";
  const TimeColumns columns = ColumnsOf(curves, kMostColumns);
  std::vector<std::vector<std::string>> rows = {{"SERIES", "CURVE", "LAST", "MIN", "MAX", "UNIT"}};
  for (const telemetry::Curve& curve : curves.series) {
    rows.push_back(RowOf(curve, columns, glyphs));
  }
  std::string out = "\n" + Columns(rows);
  if (curves.dropped_series > 0) {
    out +=
        fmt::format("and {} that had no room\n", Plural(curves.dropped_series, "series", "series"));
  }
  return out;
}

}  // namespace

int ShowReport(Platform& platform, const FlagValues& flags) {
  const Result<JobFolder> folder = JobStore(platform.home).Find(flags.arguments().front());
  if (!folder.ok()) return Fail(platform, folder.status());
  const bool json = flags.String("output") == "json";
  telemetry::Query query{.series = SplitList(flags.String("series"))};
  if (!json) query.max_points = kMostColumns;
  const Result<telemetry::Curves> curves = CurvesOf(platform, *folder, query);
  if (!curves.ok()) {
    return Fail(platform, curves.status().Within(fmt::format("the curves of {}", folder->name())));
  }
  if (const Status known = CheckNames(query.series, *curves, folder->name()); !known.ok()) {
    return Fail(platform, known);
  }
  if (json) {
    platform.out << curves->ToJson() << "\n";
  } else {
    const Result<JobSnapshot> snapshot = TakeSnapshot(platform, *folder);
    if (!snapshot.ok()) return Fail(platform, snapshot.status());
    const double now =
        std::chrono::duration<double>(platform.clock.WallNow().time_since_epoch()).count();
    platform.out << HeaderText(*snapshot, now, platform.terminal.color)
                 << CurveTable(*curves, GlyphsOf(platform));
  }
  platform.out.flush();
  return kExitOk;
}

}  // namespace edl::cli
