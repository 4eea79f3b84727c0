#include "master/service/compat_admission.h"

#include <algorithm>
#include <string_view>

#include <unistd.h>

#include "master/core.h"
#include "master/service/listener.h"

namespace edl::master {
namespace {

// How long the owner of a peer is cached, because a lookup reads the list of all connections of the
// machine. The port cannot belong to another user within this time: the kernel keeps the port of a
// closed connection for a minute.
constexpr std::chrono::seconds kCached{30};
constexpr size_t kMostKnown = 16384;

// "10.244.1.7" of "ipv4:10.244.1.7:43210".
std::string HostOf(std::string_view peer) {
  peer.remove_prefix(std::min(peer.find(':') + 1, peer.size()));
  peer = peer.substr(0, peer.rfind(':'));
  for (const std::string_view open : {"%5B", "["}) {
    if (peer.starts_with(open)) peer.remove_prefix(open.size());
  }
  for (const std::string_view close : {"%5D", "]"}) {
    if (peer.ends_with(close)) peer.remove_suffix(close.size());
  }
  return std::string(peer);
}

bool IsLoopback(std::string_view peer) {
  return peer.starts_with("ipv4:127.") || peer.starts_with("ipv6:%5B::1%5D") ||
         peer.starts_with("ipv6:[::1]");
}

}  // namespace

bool CompatAdmission::IsOurs(const std::string& peer, Time now) {
  if (const auto known = known_.find(peer); known != known_.end() && now < known->second) {
    return true;
  }
  const auto owner = OwnerOf(peer);
  if (!owner || (*owner != geteuid() && *owner != 0)) return false;
  if (known_.size() >= kMostKnown) known_.clear();
  known_[peer] = now + kCached;
  return true;
}

Status CompatAdmission::Check(const Core& core, const std::string& peer) {
  if (!job_.compat_api) {
    return PermissionDenied(
        "the job was started with --compat_api=off, so it serves only clients with its token");
  }
  if (on_this_machine_ && IsLoopback(peer)) {
    if (IsOurs(peer, core.now())) return Ok();
    return PermissionDenied(
        "{} is not a process of the job's user; the compatibility API serves only that user", peer);
  }
  if (!core.keeper().IsHost(HostOf(peer))) {
    return PermissionDenied(
        "{} is not the address of a replica of this job; the compatibility API serves only "
        "replicas",
        peer);
  }
  return Ok();
}

}  // namespace edl::master
