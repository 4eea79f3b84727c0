#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "base/clock.h"
#include "master/types.h"

namespace edl::master {

// Replicas that run and do not work: silent, or with a shard that is never reported.
//
// Confined: call it on the master's loop.
class TroubledReplicas {
 public:
  struct Trouble {
    Time since;
    std::string reason;  // for people
  };

  // The first trouble counts from its beginning; the newest reason is shown.
  void Add(ReplicaRef replica, std::string reason, Time now) {
    auto& trouble = troubles_.try_emplace(replica, Trouble{.since = now}).first->second;
    if (trouble.reason == reason) return;
    trouble.reason = std::move(reason);
    ++number_;
  }
  // It works again, or is gone.
  void Clear(ReplicaRef replica) {
    if (!troubles_.empty() && troubles_.erase(replica) > 0) ++number_;
  }
  // Empty: it is well.
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
