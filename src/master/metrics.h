#pragma once

#include "metrics/exposition.h"

#include "base/histogram.h"
#include "master/core.h"

namespace edl::master {

// How long the loop takes.
struct LoopTimes {
  const Histogram& rounds;
  const Histogram& commits;
};

// Adds what /metrics shows of a job. Call it on the master's loop. It takes microseconds, plus
// about a millisecond for 10,000 replicas.
void AddMetrics(const Core& core, const LoopTimes& times, metrics::Exposition& out);

}  // namespace edl::master
