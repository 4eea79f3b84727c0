#include "reconciler/condition.h"

#include <algorithm>
#include <utility>

namespace edl::reconciler {

const Condition* Conditions::Find(std::string_view type) const {
  const auto found = std::find_if(
      all_.begin(), all_.end(), [&](const Condition& condition) { return condition.type == type; });
  return found == all_.end() ? nullptr : &*found;
}

void Conditions::AppendToMessage(std::string_view type, const std::string& text) {
  for (Condition& each : all_) {
    if (each.type == type) each.message += text;
  }
}

bool Conditions::IsTrue(std::string_view type) const {
  const Condition* found = Find(type);
  return found != nullptr && found->is_true;
}

bool Conditions::Set(std::string_view type, bool is_true, std::string_view reason,
                     std::string message, WallTime now) {
  if (IsTrue(kFailed)) return false;
  Condition next{.type = std::string(type),
                 .is_true = is_true,
                 .reason = std::string(reason),
                 .message = std::move(message),
                 .updated = now,
                 .changed = now};
  const auto same_type = [&](const Condition& each) { return each.type == type; };
  const auto old = std::find_if(all_.begin(), all_.end(), same_type);
  if (old != all_.end() && old->is_true == is_true) {
    if (old->reason == reason) return false;
    next.changed = old->changed;
    *old = std::move(next);
    return true;
  }
  std::erase_if(all_, same_type);
  if (type == kRunning || type == kRestarting) {
    const std::string_view other = type == kRunning ? kRestarting : kRunning;
    std::erase_if(all_, [&](const Condition& each) { return each.type == other; });
  }
  if (type == kSucceeded || type == kFailed) {
    for (Condition& each : all_) {
      if (each.type == kRunning || each.type == kRestarting) each.is_true = false;
    }
  }
  all_.push_back(std::move(next));
  return true;
}

bool Conditions::EnsureCreated(std::string reason, std::string message, WallTime now) {
  if (Find(kCreated) != nullptr) return false;
  all_.insert(all_.begin(), {.type = std::string(kCreated),
                             .is_true = true,
                             .reason = std::move(reason),
                             .message = std::move(message),
                             .updated = now,
                             .changed = now});
  return true;
}

}  // namespace edl::reconciler
