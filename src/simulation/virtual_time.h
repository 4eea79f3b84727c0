#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/log.h"

namespace edl::master {

// The event queue, the clock and the random numbers of a simulated schedule. The same seed gives
// the same schedule.
//
// Confined to the thread that runs the simulation.
class VirtualTime {
 public:
  // There are no faults after this time.
  static constexpr std::chrono::seconds kFaultsUntil{90};

  explicit VirtualTime(uint64_t seed) : seed_(seed), random_(seed) {}

  std::mt19937_64& random() { return random_; }
  // Random numbers: in [0, 1), in [low, high], and a duration in [low, high] milliseconds.
  double Chance() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  int Pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  std::chrono::milliseconds Between(int low, int high) {
    return std::chrono::milliseconds(Pick(low, high));
  }

  Time now() const { return now_; }
  // Since the start of the schedule.
  double seconds() const { return std::chrono::duration<double>(now_ - start_).count(); }
  // Whether faults may still be injected.
  bool Faulty() const { return now_ - start_ < kFaultsUntil; }
  // Runs `run` as an event, `later` from now. Events of the same time run in the order of the
  // calls.
  void At(Duration later, std::function<void()> run) {
    events_.push({now_ + later, ++order_, std::move(run)});
  }
  // Runs the next event. Returns false if there is none.
  bool RunNext();

  // The probability that a message is lost.
  void set_loss(double loss) { loss_ = loss; }
  // Decides by chance whether a message is lost, and counts it in lost().
  bool Lose();
  int lost() const { return lost_; }

  // The schedule violates an invariant. Only the first failure counts.
  void Fail(std::string_view what);
  bool failed() const { return !failure_.empty(); }
  const std::string& failure() const { return failure_; }
  // Writes to the log of a replay.
  template <typename... Args>
  void Note(fmt::format_string<Args...> format, Args&&... args) const {
    if (LogEnabled(LogLevel::kDebug)) Write(fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  struct Event {
    Time at;
    uint64_t order;
    std::function<void()> run;
    bool operator<(const Event& other) const {
      return std::tie(at, order) > std::tie(other.at, other.order);
    }
  };

  void Write(std::string_view note) const;

  const uint64_t seed_;
  std::mt19937_64 random_;
  const Time start_{std::chrono::seconds(1000)};
  Time now_ = start_;
  uint64_t order_ = 0;
  std::priority_queue<Event> events_;
  double loss_ = 0;
  int lost_ = 0;
  std::string failure_;
};

}  // namespace edl::master
