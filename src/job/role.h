#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace edl::job {

enum class Role { kMaster, kWorker, kPs, kChief, kEvaluator };

inline constexpr std::array<Role, 4> kReplicaRoles = {Role::kPs, Role::kChief, Role::kWorker,
                                                      Role::kEvaluator};

// "worker", "ps", ...: as in pod names, TF_CONFIG and flags.
std::string_view NameOf(Role role);
std::optional<Role> RoleFromName(std::string_view name);

// WORKER_ID of a replica. It is unique across roles, because published clients send no role: the id
// for a worker, 1,000,000 + id for a chief, 2,000,000 + id for an evaluator, 3,000,000 + id for a
// ps.
int64_t WorkerIdOf(Role role, int64_t replica_id);

struct RoleAndId {
  Role role;
  int64_t id;
  bool operator==(const RoleAndId&) const = default;
};
std::optional<RoleAndId> FromWorkerId(int64_t worker_id);

}  // namespace edl::job
