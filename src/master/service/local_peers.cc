#include "master/service/local_peers.h"

#include <unistd.h>

#include "master/service/listener.h"

namespace edl::master {
namespace {

// How long the owner of a peer is cached, because a lookup reads the list of all connections of the
// machine. The port cannot belong to another user within this time: the kernel keeps the port of a
// closed connection for a minute.
constexpr std::chrono::seconds kCached{30};
constexpr size_t kMostKnown = 16384;

}  // namespace

bool LocalPeers::IsLoopback(std::string_view peer) {
  return peer.starts_with("ipv4:127.") || peer.starts_with("ipv6:%5B::1%5D") ||
         peer.starts_with("ipv6:[::1]");
}

bool LocalPeers::IsOurs(const std::string& peer, Time now) {
  if (const auto known = known_.find(peer); known != known_.end() && now < known->second) {
    return true;
  }
  const auto owner = OwnerOf(peer);
  if (!owner || (*owner != geteuid() && *owner != 0)) return false;
  if (known_.size() >= kMostKnown) known_.clear();
  known_[peer] = now + kCached;
  return true;
}

}  // namespace edl::master
