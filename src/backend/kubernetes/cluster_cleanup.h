#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"

namespace edl::backend::kubernetes {

// Cleans up after a master that terminates without having ended its job. Only the pod of the master
// knows what it launched.
class ClusterCleanup {
 public:
  // Returns null if this process does not run in the pod of a master. `clock` outlives the object.
  static std::unique_ptr<ClusterCleanup> Make(const Clock& clock);
  virtual ~ClusterCleanup() = default;

  // Records in the job's status that the pod was terminated, and by whom, because the pod object
  // will soon be deleted. Takes two seconds at most.
  virtual Status NoteInterruption() = 0;
  // Deletes every pod of the job that has not terminated, and retries until none is left or a few
  // minutes have passed.
  virtual Status DeleteReplicas() = 0;
};

}  // namespace edl::backend::kubernetes
