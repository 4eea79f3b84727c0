#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "job/job_view.h"

namespace edl::job {

// The sums over all training datasets, or over all datasets if none is for training.
struct Records {
  int64_t done = 0;
  int64_t total = 0;  // 0: without end, or not known yet
  int64_t epoch = 0;  // being leased, from 1; 0: not known yet
  int64_t epochs = 0;
};
Records RecordsOf(const JobView& view);

// "40 %", rounded down; "1200 records" for data without end; empty: no dataset is registered.
std::string ProgressOf(const JobView& view);

// The message with which a data-shard service logs its progress. The operator of TFJobs, which
// cannot call the service, reads it from the log of the pod: LastProgress.
std::string ProgressMessage(std::string_view progress);
// The progress in the last such message of a log; empty: there is none.
std::string LastProgress(std::string_view log);

}  // namespace edl::job
