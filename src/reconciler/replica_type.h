#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace edl::reconciler {

// A role of a TFJob, in the order in which the status of a job is computed.
enum class ReplicaType { kChief, kEvaluator, kMaster, kPs, kWorker };

inline constexpr std::array<ReplicaType, 5> kReplicaTypes = {
    ReplicaType::kChief, ReplicaType::kEvaluator, ReplicaType::kMaster, ReplicaType::kPs,
    ReplicaType::kWorker};

// The canonical spelling in specs and statuses: "PS", "Worker".
std::string_view NameOf(ReplicaType type);
// The spelling in names, labels and TF_CONFIG: "ps", "worker".
std::string LowerNameOf(ReplicaType type);
// Reads a spelling in any case. nullopt: no such role.
std::optional<ReplicaType> ParseReplicaType(std::string_view text);

// The role whose end decides about the job, if a job has it.
inline bool IsChiefOrMaster(ReplicaType type) {
  return type == ReplicaType::kChief || type == ReplicaType::kMaster;
}

}  // namespace edl::reconciler
