#include "kube/timing.h"

#include <condition_variable>
#include <ctime>
#include <mutex>
#include <random>

namespace edl::kube {
namespace {

bool Wait(Duration duration, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never_notified;
  std::unique_lock lock(mutex);
  never_notified.wait_for(lock, stop, duration, [] { return false; });
  return !stop.stop_requested();
}

double Chance() {
  thread_local std::mt19937_64 source(std::random_device{}());
  return std::uniform_real_distribution<double>(0, 1)(source);
}

}  // namespace

Time BootClock::Now() const {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return Time(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

Timing RealTiming(const Clock& clock) { return {clock, Wait, Chance}; }

}  // namespace edl::kube
