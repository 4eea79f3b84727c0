#include "reconciler/write_order.h"

#include <algorithm>
#include <string_view>

namespace edl::reconciler {

WriteOrder OrderOfWrites(const Plan& plan, const JobStatus& stored) {
  const JobStatus& next = plan.status;
  const bool only_creates =
      std::all_of(plan.actions.begin(), plan.actions.end(), [](const Action& action) {
        return action.kind == Action::Kind::kCreatePod ||
               action.kind == Action::Kind::kCreateService;
      });
  if (!only_creates) return WriteOrder::kStatusFirst;
  for (const std::string_view type : {kRestarting, kSucceeded, kFailed, kSuspended}) {
    if (stored.conditions.IsTrue(type) != next.conditions.IsTrue(type)) {
      return WriteOrder::kStatusFirst;
    }
  }
  const bool same_decisions = stored.retries == next.retries &&
                              stored.replacing == next.replacing &&
                              stored.completed == next.completed;
  return same_decisions ? WriteOrder::kActionsFirst : WriteOrder::kStatusFirst;
}

}  // namespace edl::reconciler
