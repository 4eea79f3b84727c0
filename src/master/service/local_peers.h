#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace edl::master {

// Recognises callers on this machine that belong to the master's own user, or to root. The kernel
// knows the owner of each connection, so such callers need no token.
//
// Confined: call it on the master's loop.
class LocalPeers {
 public:
  // Whether the peer, "ipv4:127.0.0.1:43210", has a loopback address.
  static bool IsLoopback(std::string_view peer);
  // REQUIRES: IsLoopback(peer), and the master listens on a loopback address: then the peer is a
  // process of this machine and not a proxy beside the master.
  bool IsOurs(const std::string& peer, Time now);

 private:
  std::map<std::string, Time> known_;  // our peers, with the time when that is checked again
};

}  // namespace edl::master
