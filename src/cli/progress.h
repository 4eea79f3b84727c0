#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <vector>

#include "base/clock.h"
#include "job/job_view.h"
#include "job/progress.h"

namespace edl::cli {

// Records per second over the last half minute. Confined.
class RateMeter {
 public:
  void Add(Time now, int64_t records_done);
  double PerSecond() const;  // 0: not known yet

 private:
  struct Sample {
    Time time;
    int64_t records;
  };
  std::deque<Sample> samples_;
};

using job::Records;
using job::RecordsOf;

// One line with state, epoch, records, records/s, time left, last loss and replicas by state. If
// the line is longer than `columns`, parts are left out in this order: replicas, rate, epoch,
// number of records. State, percent, time left and loss stay longest.
std::string ProgressLine(const job::JobView& view, double records_per_second,
                         size_t columns = std::numeric_limits<size_t>::max());

// "1 ps, 2 workers running; 1 worker waiting".
std::string ReplicasByState(const job::JobView& view);

// "worker-0" for "iris-edljob-worker-0" of job iris.
std::string ShortName(const job::JobView& view, const std::string& replica);

// One line for each change between two views of a job.
std::vector<std::string> Changes(const job::JobView& before, const job::JobView& after);

}  // namespace edl::cli
