#pragma once

#include <string>

#include "kube/object.h"

namespace edl::backend::kubernetes {

// The state of a master, derived from its pod object.
struct MasterLife {
  bool running = false;  // the master runs, or will when its pod starts
  std::string trouble;   // why it does not run; may be empty
};

// Only the container of the master counts: others in its pod (an injected proxy) may keep running.
MasterLife MasterLifeOf(const kube::Object& pod);

}  // namespace edl::backend::kubernetes
