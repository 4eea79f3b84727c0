#include "kube/timing.h"

#include <condition_variable>
#include <mutex>
#include <random>

namespace edl::kube {
namespace {

bool Wait(Duration duration, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any told;
  std::unique_lock lock(mutex);
  told.wait_for(lock, stop, duration, [] { return false; });
  return !stop.stop_requested();
}

double Chance() {
  thread_local std::mt19937_64 source(std::random_device{}());
  return std::uniform_real_distribution<double>(0, 1)(source);
}

}  // namespace

Timing RealTiming(const Clock& clock) { return {clock, Wait, Chance}; }

}  // namespace edl::kube
