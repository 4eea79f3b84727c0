#pragma once

#include <string>

#include "base/status.h"
#include "job/job_spec.h"
#include "master/service/local_peers.h"

namespace edl::master {

class Core;

// Decides who may call the compatibility services, whose clients cannot send a token. On one
// machine: processes of the master's own user. On a cluster: the addresses of the job's replicas.
//
// Confined: call it on the master's loop.
class CompatAdmission {
 public:
  // `job` outlives this object. `on_this_machine`: the master listens on a loopback address, so a
  // loopback peer is a process of this machine and not a proxy beside the master.
  CompatAdmission(const job::JobSpec& job, bool on_this_machine)
      : job_(job), on_this_machine_(on_this_machine) {}

  // `peer`: "ipv4:10.244.1.7:43210". PermissionDenied: the peer may not call.
  Status Check(const Core& core, const std::string& peer);

 private:
  const job::JobSpec& job_;
  const bool on_this_machine_;
  LocalPeers peers_;
};

}  // namespace edl::master
