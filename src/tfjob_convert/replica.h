#pragma once

#include <string>

#include "tfjob_convert/edit.h"
#include "tfjob_convert/notes.h"

namespace edl::tfjob_convert {

// One role of a TFJob.
struct Replica {
  std::string role;
  Path path;  // from the TFJob, in the original document
  std::string shown() const;
};

// Checks that the fields that this module changes have the right types. InvalidArgument: one has
// another type. REQUIRES: the keys have their case in v1 (FixCase).
Status CheckReplica(const Json& spec, const Replica& replica, const Notes& notes);

// Makes a replica valid for v1: restartPolicy at its place, a container named tensorflow, and named
// ports. REQUIRES: CheckReplica() is Ok.
void RewriteReplica(Json& spec, const Replica& replica, Notes& notes);

// Gives the replica the TensorFlow port `port`. REQUIRES: CheckReplica() is Ok.
void SetPort(Json& spec, const Replica& replica, int64_t port, Notes& notes);

// The containers of a replica; null if it has none.
Json* ContainersOf(Json& spec);

}  // namespace edl::tfjob_convert
