#include "job/tf_config.h"

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/json.h"

namespace edl::job {

std::string TfConfig(const std::map<Role, std::vector<std::string>>& addresses, Role role,
                     int index) {
  const auto chiefs = addresses.find(Role::kChief);
  CHECK(chiefs != addresses.end() && chiefs->second.size() == 1,
        "TensorFlow's cluster has exactly one chief");
  nlohmann::json cluster = nlohmann::json::object();
  for (const auto& [member, hosts] : addresses) {
    if (member == Role::kEvaluator || member == Role::kMaster || hosts.empty()) continue;
    cluster[std::string(NameOf(member))] = hosts;
  }
  const nlohmann::json config = {{"cluster", cluster},
                                 {"task", {{"type", NameOf(role)}, {"index", index}}}};
  return Dump(config);
}

}  // namespace edl::job
