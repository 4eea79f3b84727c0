#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "base/clock.h"
#include "master/types.h"

namespace edl::master {

// Replicas that run but do no work: they are silent, or hold a shard and never report it. Core
// shows the reasons in `status` and decides when to end such a replica.
//
// Confined: call it on the master's loop.
class TroubledReplicas {
 public:
  struct Trouble {
    Time since;
    std::string reason;  // shown to users
  };

  // A replica that is troubled already keeps its `since` and gets the new reason.
  void Add(ReplicaRef replica, std::string reason, Time now) {
    auto& trouble = troubles_.try_emplace(replica, Trouble{.since = now}).first->second;
    if (trouble.reason == reason) return;
    trouble.reason = std::move(reason);
    ++number_;
  }
  // The replica works again, or has exited.
  void Clear(ReplicaRef replica) {
    if (!troubles_.empty() && troubles_.erase(replica) > 0) ++number_;
  }
  // Empty: the replica is not troubled.
  std::string ReasonOf(ReplicaRef replica) const {
    const auto found = troubles_.find(replica);
    return found == troubles_.end() ? "" : found->second.reason;
  }

  const std::map<ReplicaRef, Trouble>& all() const { return troubles_; }
  // Rises with each change.
  uint64_t number() const { return number_; }

 private:
  std::map<ReplicaRef, Trouble> troubles_;
  uint64_t number_ = 0;
};

}  // namespace edl::master
