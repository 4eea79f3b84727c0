#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "master/shards/dataset.h"

namespace edl::master {

// The outcome of a job whose chief and workers all exited with 0: docs/states/job.md.
struct SuccessRule {
  std::string why;                   // which rule applied; empty: none did
  std::string failure;               // why the job failed; empty: it succeeded
  std::vector<std::string> remarks;  // records that were not trained
};

// `declared_end`: why the program may end with data left; empty: it may not.
SuccessRule RuleOfSuccess(const std::map<std::string, std::unique_ptr<Dataset>>& datasets,
                          const std::string& declared_end);

}  // namespace edl::master
