#pragma once

#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/status.h"
#include "ps_client/link.h"
#include "wire/socket.h"

namespace edl::ps_client {

// One attempt to reach a lane: dials, says Hello and waits for the Welcome, all without blocking
// (but for the lookup of the host's name). Confined.
class Attempt {
 public:
  // `to.shared_memory` says how. `number` counts attempts, so that all addresses of the host are
  // tried. A failure: there is nothing to wait for.
  static Result<std::unique_ptr<Attempt>> Start(const LinkOptions& to, size_t number, Time now);

  // Does what can be done now. True: the lane has answered, and link() can be adopted. A failure:
  // the attempt is over.
  Result<bool> Move();

  Time since() const { return since_; }
  // False: the TCP connection is still being made.
  bool dialled() const { return !dial_.has_value(); }
  Link& link() { return link_; }
  int fd() const { return dial_.has_value() ? dial_->fd() : link_.fd(); }
  short events() const;
  void OnReady();

 private:
  Attempt(const LinkOptions& to, Time now) : link_(to), since_(now) {}

  Link link_;
  std::optional<wire::TcpDial> dial_;
  const Time since_;
};

}  // namespace edl::ps_client
