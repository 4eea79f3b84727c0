#include "master/service/compat_admission.h"

#include <algorithm>
#include <string_view>

#include <unistd.h>

#include "master/core.h"
#include "master/service/listener.h"

namespace edl::master {
namespace {

// A lookup reads a list of all connections of the machine, and a port is not another user's within
// this time: connections that were closed keep theirs for a minute.
constexpr std::chrono::seconds kBelieved{30};
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
  known_[peer] = now + kBelieved;
  return true;
}

Status CompatAdmission::Check(const Core& core, const std::string& peer) {
  if (!job_.compat_api) {
    return PermissionDenied("--compat_api=off: this job serves clients with a token only");
  }
  if (on_this_machine_ && IsLoopback(peer)) {
    if (IsOurs(peer, core.now())) return Ok();
    return PermissionDenied(
        "{} does not belong to the job's user: the published service takes calls of that user only",
        peer);
  }
  if (!core.keeper().IsHost(HostOf(peer))) {
    return PermissionDenied("{} is not an address of this job's replicas", peer);
  }
  return Ok();
}

}  // namespace edl::master
