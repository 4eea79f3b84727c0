#pragma once

#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/status.h"
#include "ps_client/link.h"
#include "wire/socket.h"

namespace edl::ps_client {

// One attempt to connect to a lane: connects, sends Hello and waits for the Welcome. Only the DNS
// lookup blocks. Confined.
class Attempt {
 public:
  // `number` counts the attempts, so that all addresses of the host are tried in turn. A failure
  // ends the attempt.
  static Result<std::unique_ptr<Attempt>> Start(const LinkOptions& to, size_t number, Time now);

  // Makes as much progress as possible without blocking. True: the lane has answered, and link()
  // can be adopted. A failure ends the attempt.
  Result<bool> Move();

  Time since() const { return since_; }
  // False: the TCP connection is not established yet.
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
