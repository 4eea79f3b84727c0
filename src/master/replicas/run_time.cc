#include "master/replicas/run_time.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace edl::master {
namespace {

double SecondsOf(Duration span) { return std::chrono::duration<double>(span).count(); }

}  // namespace

void RunTime::Start(std::string boot, Time now) {
  boot_ = std::move(boot);
  before_ = 0;
  begin_ = now;
  ended_ = false;
}

void RunTime::Load(const std::string& saved, std::string boot, Time now, WallTime wall_now) {
  Start(std::move(boot), now);
  const nlohmann::json in = ReadJson(saved);
  if (!in.is_object()) return;
  const auto number = [&](const char* key, double otherwise) {
    const auto found = in.find(key);
    return found != in.end() && found->is_number() ? found->get<double>() : otherwise;
  };
  before_ = std::max(number("ran", 0), 0.0);
  if (in.contains("ended") && in["ended"] == true) return;
  const bool same_boot = !boot_.empty() && in.contains("boot") && in["boot"] == boot_;
  const double here =
      SecondsOf(same_boot ? Duration(now.time_since_epoch()) : wall_now.time_since_epoch());
  before_ += std::max(here - number(same_boot ? "monotonic" : "wall", here), 0.0);
}

std::string RunTime::Save(Time now, WallTime wall_now) const {
  const nlohmann::json out = {{"ran", Seconds(now)},
                              {"boot", boot_},
                              {"monotonic", SecondsOf(now.time_since_epoch())},
                              {"wall", SecondsOf(wall_now.time_since_epoch())},
                              {"ended", ended_}};
  return Dump(out);
}

void RunTime::End(Time now) {
  before_ = Seconds(now);
  ended_ = true;
}

double RunTime::Seconds(Time now) const {
  return ended_ ? before_ : before_ + std::max(SecondsOf(now - begin_), 0.0);
}

}  // namespace edl::master
