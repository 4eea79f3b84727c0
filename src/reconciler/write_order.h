#pragma once

#include "reconciler/reconcile.h"

namespace edl::reconciler {

// Which part of a plan is written first.
enum class WriteOrder { kStatusFirst, kActionsFirst };

// The status comes first if a later operator needs it to plan the same. Otherwise the actions do,
// so that new jobs start earlier: they create pods and services that follow from the spec alone.
// `stored` is the status in the cluster.
WriteOrder OrderOfWrites(const Plan& plan, const JobStatus& stored);

}  // namespace edl::reconciler
