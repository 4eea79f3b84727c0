#include "job/role.h"

#include <string_view>

namespace edl::job {
namespace {

constexpr int64_t kIdsPerRole = 1'000'000;
// The order of roles in the ranges of WORKER_ID.
constexpr std::array<Role, 4> kWorkerIdOrder = {Role::kWorker, Role::kChief, Role::kEvaluator,
                                                Role::kPs};

}  // namespace

std::string_view NameOf(Role role) {
  switch (role) {
    case Role::kMaster:
      return "master";
    case Role::kWorker:
      return "worker";
    case Role::kPs:
      return "ps";
    case Role::kChief:
      return "chief";
    case Role::kEvaluator:
      return "evaluator";
  }
  return "?";
}

std::optional<Role> RoleFromName(std::string_view name) {
  for (const Role role :
       {Role::kMaster, Role::kWorker, Role::kPs, Role::kChief, Role::kEvaluator}) {
    if (NameOf(role) == name) return role;
  }
  return std::nullopt;
}

int64_t WorkerIdOf(Role role, int64_t replica_id) {
  for (size_t place = 0; place < kWorkerIdOrder.size(); ++place) {
    if (kWorkerIdOrder.at(place) == role) {
      return static_cast<int64_t>(place) * kIdsPerRole + replica_id;
    }
  }
  return -1;
}

std::optional<RoleAndId> FromWorkerId(int64_t worker_id) {
  const int64_t place = worker_id / kIdsPerRole;
  if (worker_id < 0 || place >= static_cast<int64_t>(kWorkerIdOrder.size())) return std::nullopt;
  return RoleAndId{kWorkerIdOrder.at(static_cast<size_t>(place)), worker_id % kIdsPerRole};
}

}  // namespace edl::job
