// The input is an Accept header, and a value of a label. Whatever a value contains, its sample is
// one line, which ends with the number.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "metrics/exposition.h"

#include "base/check.h"
#include "base/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using edl::metrics::Format;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Format format = edl::metrics::FormatFor(text);
  static constexpr edl::metrics::Metric kMetric{"edl_things", edl::metrics::Type::kGauge, "Things.",
                                                "name"};
  edl::metrics::Exposition out(format, {{"job_name", "iris"}});
  out.Begin(kMetric);
  out.Add({text}, uint64_t{7});
  std::string written = out.Finish();
  const bool open_metrics = format == Format::kOpenMetrics;
  const auto lines = std::count(written.begin(), written.end(), '\n');
  CHECK(lines == (open_metrics ? 4 : 3), "{} lines: {}", lines, written);
  CHECK(written.ends_with(open_metrics ? "\"} 7\n# EOF\n" : "\"} 7\n"), "the end is wrong: {}",
        written);
  CHECK(edl::IsUtf8(written), "not UTF-8");
  return 0;
}
