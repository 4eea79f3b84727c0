#pragma once

#include <map>
#include <string>
#include <vector>

#include "job/role.h"

namespace edl::job {

// TF_CONFIG of the replica in slot `index` of `role`: where every slot is reached, and which one
// it is. `addresses` are "host:port" by index. The evaluator is left out of the cluster (the others
// would wait for it), though it gets the same cluster. REQUIRES: exactly one chief.
std::string TfConfig(const std::map<Role, std::vector<std::string>>& addresses, Role role,
                     int index);

}  // namespace edl::job
