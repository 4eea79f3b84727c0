#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <utility>

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

// Numbers of TCP ports that replicas will listen on, kept for this job as long as the pool lives.
// No socket is held, for TensorFlow binds without SO_REUSEPORT: jobs keep out of each other's way
// by byte locks on one file (byte N is port N), which the kernel drops with their holder.
//
// Confined.
class PortPool {
 public:
  // `seed` says where to begin to look, so that jobs of users with different folders seldom meet.
  static Result<PortPool> Open(const std::filesystem::path& ports_dir, PortRange ephemeral,
                               uint32_t seed);

  // A port that nobody listens on and no other job of these folders has. ResourceExhausted: none.
  Result<int> Reserve();

 private:
  PortPool(FileDescriptor locks, PortRange ephemeral, uint32_t seed)
      : locks_(std::move(locks)), ephemeral_(ephemeral), next_(seed) {}
  bool Take(int port);

  FileDescriptor locks_;
  PortRange ephemeral_;
  uint32_t next_;
  std::set<int> mine_;  // a lock does not keep its own holder away
};

}  // namespace edl::backend::local
