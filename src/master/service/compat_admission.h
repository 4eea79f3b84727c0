#pragma once

#include <map>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "job/job_spec.h"

namespace edl::master {

class Core;

// Who may call the published service, whose clients can send no token: on this machine processes of
// the master's own user, on a cluster the addresses of the job's replicas.
//
// Confined: call it on the master's loop.
class CompatAdmission {
 public:
  // `job` outlives this. `on_this_machine`: the master listens on a loopback address, so that a
  // loopback peer is one of this machine, and not a proxy beside the master.
  CompatAdmission(const job::JobSpec& job, bool on_this_machine)
      : job_(job), on_this_machine_(on_this_machine) {}

  // `peer`: "ipv4:10.244.1.7:43210". PermissionDenied: may not call.
  Status Check(const Core& core, const std::string& peer);

 private:
  bool IsOurs(const std::string& peer, Time now);

  const job::JobSpec& job_;
  const bool on_this_machine_;
  std::map<std::string, Time> known_;  // peers of our user, and until when that is believed
};

}  // namespace edl::master
