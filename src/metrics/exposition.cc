#include "metrics/exposition.h"

#include <array>
#include <charconv>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "base/check.h"
#include "base/text.h"
#include "base/utf8.h"

namespace edl::metrics {
namespace {

constexpr std::string_view kOpenMetricsType = "application/openmetrics-text";
constexpr std::string_view kPlainType = "text/plain";

std::string NumberText(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", number);
}

// A bound as both formats write it: with a decimal point, so that its series is the same in both.
std::string BoundText(double bound) {
  std::string text = fmt::format("{}", bound);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

// Quotation marks are escaped only in values of labels and in OpenMetrics.
void AppendEscaped(std::string_view text, bool quotes, std::string& out) {
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
}

// Values of labels must be UTF-8. They may come from users, such as the name of a dataset.
void AppendLabel(std::string_view name, std::string_view value, std::string& out) {
  out += out.ends_with('{') ? "" : ",";
  out += name;
  out += "=\"";
  AppendEscaped(IsUtf8(value) ? value : std::string_view("?"), /*quotes=*/true, out);
  out += '"';
}

// The weight of a media type in an Accept header: its q, 1 without q; 0 if q cannot be parsed.
double WeightOf(std::string_view parameters) {
  for (const std::string_view parameter : Split(parameters, ';')) {
    const std::string_view text = Trim(parameter);
    if (!text.starts_with("q=")) continue;
    double weight = 0;
    const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), weight);
    return error == std::errc() && weight >= 0 && weight <= 1 ? weight : 0;
  }
  return 1;
}

}  // namespace

std::string_view NameOf(Type type) {
  constexpr std::array<std::string_view, 4> kNames = {"counter", "gauge", "histogram", "info"};
  return kNames[static_cast<size_t>(type)];
}

Format FormatFor(std::string_view accept) {
  double open_metrics = 0;
  double plain = 0;
  for (const std::string_view entry : Split(accept, ',')) {
    const std::string_view text = Trim(entry);
    const std::string_view type = Trim(text.substr(0, text.find(';')));
    const std::string_view parameters = text.substr(type.size());
    if (type == kOpenMetricsType) open_metrics = std::max(open_metrics, WeightOf(parameters));
    if (type == kPlainType) plain = std::max(plain, WeightOf(parameters));
  }
  return open_metrics > 0 && open_metrics >= plain ? Format::kOpenMetrics : Format::kPrometheus;
}

std::string_view ContentTypeOf(Format format) {
  return format == Format::kOpenMetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

Exposition::Exposition(Format format, Labels process_labels)
    : format_(format), process_labels_(std::move(process_labels)) {
  std::erase_if(process_labels_, [](const auto& label) { return label.second.empty(); });
}

void Exposition::Begin(const Metric& metric) {
  metric_ = &metric;
  label_names_.clear();
  for (const std::string_view name : Split(metric.labels, ' ')) {
    if (!name.empty()) label_names_.push_back(name);
  }
  const bool open_metrics = format_ == Format::kOpenMetrics;
  const std::string_view name = open_metrics ? metric.family() : metric.name;
  // The text format of Prometheus has no info metrics.
  const Type type = !open_metrics && metric.type == Type::kInfo ? Type::kGauge : metric.type;
  const auto out = std::back_inserter(text_);
  fmt::format_to(out, "# TYPE {} {}\n", name, NameOf(type));
  if (open_metrics && !metric.unit().empty()) {
    fmt::format_to(out, "# UNIT {} {}\n", name, metric.unit());
  }
  fmt::format_to(out, "# HELP {} ", name);
  AppendEscaped(metric.help, open_metrics, text_);
  text_ += '\n';
}

void Exposition::Add(Values values, double number) { AddText("", values, "", NumberText(number)); }

void Exposition::Add(Values values, uint64_t number) {
  AddText("", values, "", fmt::format_int(number).c_str());
}

void Exposition::Add(Values values, int64_t number) {
  AddText("", values, "", fmt::format_int(number).c_str());
}

void Exposition::Add(Values values, const Buckets& buckets) {
  CHECK(buckets.counts.size() == buckets.bounds.size() + 1, "{} counts for {} bounds",
        buckets.counts.size(), buckets.bounds.size());
  uint64_t total = 0;
  for (size_t i = 0; i < buckets.counts.size(); ++i) {
    total += buckets.counts[i];
    const bool last = i == buckets.bounds.size();
    AddText("_bucket", values, last ? "+Inf" : BoundText(buckets.bounds[i]),
            fmt::format_int(total).c_str());
    if (i < buckets.exemplars.size() && buckets.exemplars[i].has_value()) {
      AddExemplar(*buckets.exemplars[i]);
    }
  }
  AddText("_sum", values, "", NumberText(buckets.sum));
  AddText("_count", values, "", fmt::format_int(total).c_str());
}

void Exposition::Add(Values values, const Histogram::Reading& reading) {
  std::array<double, Histogram::kBounds> bounds{};
  std::array<uint64_t, Histogram::kBounds + 1> counts{};
  uint64_t below = 0;
  for (size_t i = 0; i < Histogram::kBounds; ++i) {
    bounds[i] = static_cast<double>(uint64_t{1} << i) / 1e6;
    counts[i] = reading.counts[i];
    below += reading.counts[i];
  }
  // A reading is not atomic: a duration may be in a bucket and not yet in the count.
  counts.back() = reading.count > below ? reading.count - below : 0;
  Add(values,
      Buckets{
          .bounds = bounds, .counts = counts, .sum = static_cast<double>(reading.micros) / 1e6});
}

void Exposition::AddText(std::string_view suffix, Values values, std::string_view bound,
                         std::string_view number) {
  CHECK(metric_ != nullptr && values.size() == label_names_.size(), "{} values for the labels '{}'",
        values.size(), metric_ == nullptr ? "" : metric_->labels);
  text_ += metric_->name;
  text_ += suffix;
  std::string labels = "{";
  for (const auto& [name, value] : process_labels_) AppendLabel(name, value, labels);
  size_t index = 0;
  for (const std::string_view value : values) AppendLabel(label_names_[index++], value, labels);
  if (!bound.empty()) AppendLabel("le", bound, labels);
  if (labels.size() > 1) {
    text_ += labels;
    text_ += '}';
  }
  text_ += ' ';
  text_ += number;
  text_ += '\n';
}

void Exposition::AddExemplar(const Exemplar& exemplar) {
  if (format_ != Format::kOpenMetrics) return;
  std::string labels = "{";
  for (const auto& [name, value] : exemplar.labels) AppendLabel(name, value, labels);
  text_.back() = ' ';  // instead of the end of the line
  text_ += fmt::format("# {}}} {}\n", labels, NumberText(exemplar.value));
}

std::string Exposition::Finish() {
  if (format_ == Format::kOpenMetrics) text_ += "# EOF\n";
  return std::move(text_);
}

}  // namespace edl::metrics
