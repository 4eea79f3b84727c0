#include "job/progress.h"

#include <algorithm>

#include <fmt/format.h>

namespace edl::job {
namespace {

constexpr std::string_view kPrefix = "data shards: ";
constexpr std::string_view kSuffix = " done";

}  // namespace

Records RecordsOf(const JobView& view) {
  const bool any = std::any_of(view.datasets.begin(), view.datasets.end(),
                               [](const DatasetView& one) { return one.IsTraining(); });
  Records out;
  bool endless = false;
  for (const DatasetView& dataset : view.datasets) {
    if (any && !dataset.IsTraining()) continue;
    out.done += dataset.records_done;
    out.total += dataset.records_total;
    endless = endless || dataset.epochs <= 0;
    const int64_t last = dataset.epochs > 0 ? dataset.epochs : dataset.epoch + 1;
    out.epoch = std::max(out.epoch, std::min(dataset.epoch + 1, last));
    out.epochs = std::max(out.epochs, dataset.epochs);
  }
  if (endless) out.total = 0;
  return out;
}

std::string ProgressOf(const JobView& view) {
  const Records records = RecordsOf(view);
  if (records.epoch == 0) return "";
  if (records.total <= 0) return fmt::format("{} records", records.done);
  const auto percent = static_cast<int64_t>(100.0 * static_cast<double>(records.done) /
                                            static_cast<double>(records.total));
  return fmt::format("{} %", percent);
}

std::string ProgressMessage(std::string_view progress) {
  return fmt::format("{}{}{}", kPrefix, progress, kSuffix);
}

std::string LastProgress(std::string_view log) {
  constexpr size_t kLongest = 40;
  while (true) {
    const size_t at = log.rfind(kPrefix);
    if (at == std::string_view::npos) return "";
    std::string_view line = log.substr(at + kPrefix.size());
    line = line.substr(0, line.find('\n'));
    // The last line may be incomplete.
    if (line.ends_with(kSuffix) && line.size() <= kLongest) {
      return std::string(line.substr(0, line.size() - kSuffix.size()));
    }
    log = log.substr(0, at);
  }
}

}  // namespace edl::job
