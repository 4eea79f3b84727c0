#pragma once

#include <string_view>

namespace edl::metrics {

enum class Type { kCounter, kGauge, kHistogram, kInfo };
std::string_view NameOf(Type type);

// A metric as it is exported and documented. The name follows the rules of Prometheus: a counter
// ends with _total, an info metric with _info, and before that stands the unit, if there is one.
// Immutable.
struct Metric {
  std::string_view name;
  Type type = Type::kGauge;
  std::string_view help;    // a sentence
  std::string_view labels;  // names, separated by spaces; without those of the process

  // The name without _total and _info, under which OpenMetrics declares a metric.
  constexpr std::string_view family() const {
    for (const std::string_view suffix : {std::string_view("_total"), std::string_view("_info")}) {
      if (HasSuffix(suffix)) return name.substr(0, name.size() - suffix.size());
    }
    return name;
  }
  // "seconds", "bytes", "ratio"; empty: a number of things.
  constexpr std::string_view unit() const {
    for (const std::string_view unit :
         {std::string_view("seconds"), std::string_view("bytes"), std::string_view("ratio")}) {
      const std::string_view of = family();
      if (of.size() > unit.size() && of.ends_with(unit) && of[of.size() - unit.size() - 1] == '_') {
        return unit;
      }
    }
    return "";
  }

 private:
  constexpr bool HasSuffix(std::string_view suffix) const {
    const bool counter = type == Type::kCounter && suffix == "_total";
    const bool info = type == Type::kInfo && suffix == "_info";
    return (counter || info) && name.ends_with(suffix);
  }
};

}  // namespace edl::metrics
