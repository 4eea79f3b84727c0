#include "simulation/virtual_time.h"

#include <utility>

namespace edl::master {

bool VirtualTime::RunNext() {
  if (events_.empty()) return false;
  // Removed before it runs, because it may add events. Moving from the top is safe: the order
  // depends on `at` and `order` alone.
  Event event = std::move(const_cast<Event&>(events_.top()));
  events_.pop();
  now_ = event.at;
  event.run();
  return true;
}

bool VirtualTime::Lose() {
  if (!Faulty() || Chance() >= loss_) return false;
  ++lost_;
  return true;
}

void VirtualTime::Fail(std::string_view what) {
  if (failed()) return;
  failure_ = fmt::format("seed {} at {:.3f} s: {}", seed_, seconds(), what);
}

void VirtualTime::Write(std::string_view note) const { LOG_DEBUG("{:.3f} {}", seconds(), note); }

}  // namespace edl::master
