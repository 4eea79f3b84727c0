#pragma once

#include <map>
#include <string>
#include <vector>

#include "job/role.h"

namespace edl::job {

// TF_CONFIG of the replica in slot `index` of `role`: the addresses of all slots, and its own role
// and index. `addresses` are "host:port" by index. The evaluator gets the same cluster but is not
// part of it, because the others would wait for it. REQUIRES: exactly one chief.
std::string TfConfig(const std::map<Role, std::vector<std::string>>& addresses, Role role,
                     int index);

}  // namespace edl::job
