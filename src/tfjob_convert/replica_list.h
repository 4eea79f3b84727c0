#pragma once

#include "tfjob_convert/edit.h"
#include "tfjob_convert/notes.h"
#include "tfjob_convert/replica.h"

namespace edl::tfjob_convert {

// The fields of v1alpha1 that v1 does not have.
inline constexpr auto kOldSpecFields =
    std::to_array<std::string_view>({"replicaSpecs", "tfImage", "terminationPolicy", "RuntimeId",
                                     "schedulerName", "tensorboard", "tfRpcLayer"});

// Replaces the list spec.replicaSpecs of v1alpha1 by the map spec.tfReplicaSpecs. Returns where the
// replicas were; empty if there is no such list. InvalidArgument: the list has a replica that v1
// cannot express.
Result<std::vector<Replica>> ReplaceReplicaList(Json& spec, Notes& notes);

// Removes the other fields of old versions and keeps their effect where v1 can. REQUIRES: the
// replicas are objects.
void ReplaceOldFields(Json& spec, Notes& notes);

}  // namespace edl::tfjob_convert
