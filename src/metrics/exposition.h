#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "metrics/metric.h"

#include "base/histogram.h"

namespace edl::metrics {

// The formats in which Prometheus reads metrics.
enum class Format { kPrometheus, kOpenMetrics };
// The format that the Accept header of a request asks for: OpenMetrics if the client prefers it,
// otherwise the text format of Prometheus.
Format FormatFor(std::string_view accept);
std::string_view ContentTypeOf(Format format);

using Labels = std::vector<std::pair<std::string, std::string>>;

// An observation that a bucket of a histogram points to, such as {incident="17"} 0.31.
struct Exemplar {
  Labels labels;
  double value = 0;
};

// Buckets, ascending and without +Inf. `counts` has one entry more: what is above the last bound.
struct Buckets {
  std::span<const double> bounds;
  std::span<const uint64_t> counts;  // of each bucket alone
  double sum = 0;
  std::span<const std::optional<Exemplar>> exemplars = {};  // empty, or one for each count
};

// Writes metrics in one of the formats. The samples of a metric follow its Begin.
//
// Confined.
class Exposition {
 public:
  // `process_labels` become part of every sample, such as the job's name, except those without a
  // value.
  Exposition(Format format, Labels process_labels);

  // REQUIRES: no metric with this name was begun before.
  void Begin(const Metric& metric);
  // Adds a sample. `values`: of the metric's labels, in their order. A number that is not finite is
  // written as NaN, +Inf or -Inf.
  void Add(std::initializer_list<std::string_view> values, double number);
  void Add(std::initializer_list<std::string_view> values, uint64_t number);
  void Add(std::initializer_list<std::string_view> values, int64_t number);
  void Add(std::initializer_list<std::string_view> values, const Buckets& buckets);
  void Add(std::initializer_list<std::string_view> values, const Histogram::Reading& reading);

  // Begin and Add of a metric with one sample.
  template <typename Number>
  void AddOnly(const Metric& metric, const Number& number) {
    Begin(metric);
    Add({}, number);
  }

  // The whole text. Ends the use of this object.
  std::string Finish();

 private:
  using Values = std::initializer_list<std::string_view>;

  void AddText(std::string_view suffix, Values values, std::string_view bound,
               std::string_view number);
  void AddExemplar(const Exemplar& exemplar);

  const Format format_;
  Labels process_labels_;
  const Metric* metric_ = nullptr;
  std::vector<std::string_view> label_names_;  // of metric_
  std::string text_;
};

}  // namespace edl::metrics
