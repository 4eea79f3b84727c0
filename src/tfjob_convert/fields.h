#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "tfjob_convert/edit.h"
#include "tfjob_convert/notes.h"

namespace edl::tfjob_convert {

inline constexpr std::string_view kPortName = "tfjob-port";
inline constexpr int kDefaultPort = 2222;
inline constexpr std::string_view kContainerName = "tensorflow";

// The fields of kubeflow.org/v1.
inline constexpr auto kSpecFields = std::to_array<std::string_view>(
    {"tfReplicaSpecs", "successPolicy", "enableDynamicWorker", "runPolicy"});
inline constexpr auto kRunPolicyFields = std::to_array<std::string_view>(
    {"cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit",
     "suspend", "managedBy", "schedulingPolicy"});
inline constexpr auto kSchedulingPolicyFields = std::to_array<std::string_view>(
    {"minAvailable", "queue", "minResources", "priorityClass", "scheduleTimeoutSeconds"});
inline constexpr auto kReplicaFields =
    std::to_array<std::string_view>({"replicas", "restartPolicy", "template"});
inline constexpr auto kRoles =
    std::to_array<std::string_view>({"Chief", "Master", "Worker", "PS", "Evaluator"});

using Names = std::span<const std::string_view>;

// Whether `name` is one of `names`.
bool IsOneOf(std::string_view name, Names names);

// Corrects the case of the keys in `object` that are fields otherwise: old operators ignored case.
// `where` is the path of the object, as notes show it.
void FixCase(Json& object, Names fields, std::string_view where, Notes& notes);

// Warns of the keys in `object` that are not `fields`. They stay, because only the author knows
// what they mean. `similar` has more names that the author may have meant.
void WarnOfUnknownFields(const Json& object, Names fields, Names similar, std::string_view where,
                         Notes& notes);

// Warns of a text field that has another value than these.
void WarnOfUnknownValue(const Json& object, std::string_view field, Names values,
                        std::string_view where, Notes& notes);

}  // namespace edl::tfjob_convert
