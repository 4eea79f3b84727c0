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

// The ports that the kernel gives to outgoing connections: one of them may be taken at any moment.
PortRange EphemeralPorts();

// TCP ports for the master and the replicas of one job, reserved on the whole machine for as long
// as the pool lives: for all users, for all ELASTICDL_HOMEs and for all containers that share the
// network. The lock of port N is the abstract Unix socket "@elasticdl-port-N". The kernel keeps
// such names where it keeps ports, in the network namespace, and frees them with their holder.
//
// Confined.
class PortPool {
 public:
  // The search starts at a place that `seed` chooses, evenly over all candidates.
  PortPool(PortRange ephemeral, uint32_t seed);

  // A port that nobody listens on and no other job has reserved. The TCP port itself stays unbound,
  // because the replica's program may bind it without SO_REUSEADDR. ResourceExhausted: there is no
  // free port, or no free descriptor for its lock.
  Result<int> Reserve();

  // As Reserve(), and keeps the port of 127.0.0.1 bound with SO_REUSEADDR, without listening. Only
  // a server that sets SO_REUSEADDR, as gRPC's does, can listen on it.
  Result<int> ReserveAndBind();

  void Release(int port) { reserved_.erase(port); }

 private:
  struct Reservation {
    FileDescriptor lock;
    FileDescriptor bound;  // invalid: the port is not bound
  };

  // The candidate number `n`: first all ports outside of the ephemeral range, then all within it.
  int Candidate(uint32_t n) const;
  // False: the port is in use.
  Result<bool> Take(int port);

  const PortRange ephemeral_;
  const uint32_t outside_;  // how many candidates are outside of the ephemeral range
  uint32_t next_;
  std::map<int, Reservation> reserved_;
};

}  // namespace edl::backend::local
