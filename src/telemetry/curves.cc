#include "telemetry/curves.h"

#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace edl::telemetry {
namespace {

using nlohmann::json;

// Written directly, because a tree of JSON values would cost the loop of the master ten times more.
void Write(const Curve::Point& point, std::string& out) {
  const Point& values = point.values;
  auto to = std::back_inserter(out);
  if (values.count == 0) {
    fmt::format_to(to, "[{},null,null,null,0,", point.time);
  } else {
    fmt::format_to(to, "[{},{},{},{},{},", point.time, values.last, values.min, values.max,
                   values.count);
  }
  if (values.step >= 0) {
    fmt::format_to(to, "{}]", values.step);
  } else {
    out += "null]";
  }
}

void Write(const Curve& curve, std::string& out) {
  out += fmt::format(R"({{"name":{},"unit":{},"points":[)", Dump(json(curve.name)),
                     Dump(json(curve.unit)));
  const char* separator = "";
  for (const Curve::Point& point : curve.points) {
    out += separator;
    Write(point, out);
    separator = ",";
  }
  out += R"(],"not_finite":[)";
  separator = "";
  for (const Curve::Point& point : curve.points) {
    if (!point.values.not_finite) continue;
    fmt::format_to(std::back_inserter(out), "{}{}", separator, point.time);
    separator = ",";
  }
  out += "]}";
}

Curve::Point ReadPoint(const json& in) {
  constexpr size_t kFields = 6;
  Curve::Point point{.time = in.at(0).get<int64_t>()};
  point.values.count = in.at(4).get<uint32_t>();
  point.values.not_finite = point.values.count == 0;
  if (point.values.count > 0) {
    point.values.last = in.at(1).get<float>();
    point.values.min = in.at(2).get<float>();
    point.values.max = in.at(3).get<float>();
  }
  if (!in.at(kFields - 1).is_null()) point.values.step = in.at(kFields - 1).get<int64_t>();
  return point;
}

}  // namespace

std::string Curves::ToJson() const {
  std::string out = R"({"series":[)";
  const char* separator = "";
  for (const Curve& curve : series) {
    out += separator;
    Write(curve, out);
    separator = ",";
  }
  out += fmt::format(R"(],"dropped_series":{}}})", dropped_series);
  return out;
}

Result<Curves> Curves::FromJson(std::string_view text) {
  EDL_ASSIGN_OR_RETURN(const json in, ParseJson(text));
  Curves curves;
  try {
    for (const json& listed : in.at("series")) {
      Curve curve{.name = listed.at("name").get<std::string>(),
                  .unit = listed.at("unit").get<std::string>()};
      for (const json& point : listed.at("points")) curve.points.push_back(ReadPoint(point));
      for (const json& time : listed.at("not_finite")) {
        for (Curve::Point& point : curve.points) {
          if (point.time == time.get<int64_t>()) point.values.not_finite = true;
        }
      }
      curves.series.push_back(std::move(curve));
    }
    curves.dropped_series = in.at("dropped_series").get<int64_t>();
  } catch (const json::exception& error) {
    return InvalidArgument("the telemetry cannot be parsed: {}", error.what());
  }
  return curves;
}

}  // namespace edl::telemetry
