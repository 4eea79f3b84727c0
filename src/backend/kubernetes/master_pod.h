#pragma once

#include <string>

#include "kube/object.h"

namespace edl::backend::kubernetes {

// What the pod of a master says about its master.
struct MasterLife {
  bool running = false;  // the master runs, or will once its pod does
  std::string trouble;   // why it does not run, where the pod says so
};

// The master's own container decides: others in its pod (a proxy that was injected) may run on.
MasterLife MasterLifeOf(const kube::Object& pod);

}  // namespace edl::backend::kubernetes
