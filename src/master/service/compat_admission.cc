#include "master/service/compat_admission.h"

#include <algorithm>
#include <string_view>

#include "master/core.h"

namespace edl::master {
namespace {

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

}  // namespace

Status CompatAdmission::Check(const Core& core, const std::string& peer) {
  if (!job_.compat_api) {
    return PermissionDenied(
        "the job was started with --compat_api=off, so it serves only clients with its token");
  }
  if (on_this_machine_ && LocalPeers::IsLoopback(peer)) {
    if (peers_.IsOurs(peer, core.now())) return Ok();
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
