#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"

namespace edl::backend::kubernetes {

// What is left to do in a cluster when a master ends without having ended its job: nobody else
// knows what it launched.
class ClusterCleanup {
 public:
  // Null where this process is no master's pod. `clock` outlives it.
  static std::unique_ptr<ClusterCleanup> Make(const Clock& clock);
  virtual ~ClusterCleanup() = default;

  // Notes with the job's status that the pod was told to end, and by whom: the pod's own object is
  // gone soon. Takes two seconds at most.
  virtual Status NoteInterruption() = 0;
  // Deletes every pod of the job that has not ended, until there is none. Gives up after a few
  // minutes.
  virtual Status DeleteReplicas() = 0;
};

}  // namespace edl::backend::kubernetes
