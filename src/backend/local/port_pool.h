#pragma once

#include <cstdint>
#include <map>

#include "base/file.h"
#include "base/status.h"

namespace edl::backend::local {

struct PortRange {
  int first = 0;
  int last = 0;
  bool Contains(int port) const { return first <= port && port <= last; }
};

// The ports that the kernel assigns to outgoing connections: any of them may be in use at any
// moment.
PortRange EphemeralPorts();

// TCP ports for the master and the replicas of one job. A port is reserved on the whole machine
// while the pool exists: for all users, all ELASTICDL_HOMEs and all containers that share the
// network. The lock of port N is the abstract Unix socket "@elasticdl-port-N". The kernel keeps
// such names in the network namespace, like ports, and frees them with their owner.
//
// Confined.
class PortPool {
 public:
  // `seed` chooses where the search starts, uniformly over all candidates.
  PortPool(PortRange ephemeral, uint32_t seed);

  // Reserves a port on which nobody listens and that no other job has reserved. The TCP port itself
  // stays unbound, because the program of the replica may bind it without SO_REUSEADDR.
  // ResourceExhausted: no port, or no descriptor for its lock, is free.
  Result<int> Reserve();

  // Like Reserve(), and keeps the port bound on 127.0.0.1 with SO_REUSEADDR, without listening.
  // Only a server that sets SO_REUSEADDR, like that of gRPC, can listen on it.
  Result<int> ReserveAndBind();

  // The same for this port. Unavailable: another program or another job uses it.
  Status ReserveAndBindPort(int port);

  void Release(int port) { reserved_.erase(port); }

 private:
  struct Reservation {
    FileDescriptor lock;
    FileDescriptor bound;  // invalid if the port is not bound
  };

  // The `n`-th candidate: first all ports outside the ephemeral range, then all in it.
  int Candidate(uint32_t n) const;
  // Returns false if the port is in use.
  Result<bool> Take(int port);

  const PortRange ephemeral_;
  const uint32_t outside_;  // number of candidates outside the ephemeral range
  uint32_t next_;
  std::map<int, Reservation> reserved_;
};

}  // namespace edl::backend::local
