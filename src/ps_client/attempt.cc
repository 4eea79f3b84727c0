#include "ps_client/attempt.h"

#include <utility>

#include <poll.h>

#include "wire/messages.h"
#include "wire/ring.h"

namespace edl::ps_client {

Result<std::unique_ptr<Attempt>> Attempt::Start(const LinkOptions& to, size_t number, Time now) {
  std::unique_ptr<Attempt> attempt(new Attempt(to, now));
  if (to.shared_memory) {
    EDL_ASSIGN_OR_RETURN(auto stream, wire::ConnectRing(wire::RingName(to.port)));
    attempt->link_.Attach(std::move(stream));
  } else {
    EDL_ASSIGN_OR_RETURN(attempt->dial_, wire::TcpDial::Start(to.host, to.port, number));
  }
  return attempt;
}

Result<bool> Attempt::Move() {
  if (dial_.has_value()) {
    EDL_ASSIGN_OR_RETURN(std::optional<FileDescriptor> socket, dial_->Continue());
    if (!socket.has_value()) return false;
    dial_.reset();
    link_.Attach(std::make_unique<wire::SocketStream>(*std::move(socket)));
  }
  EDL_RETURN_IF_ERROR(link_.Pump());
  return link_.greeted();
}

short Attempt::events() const { return dial_.has_value() ? POLLOUT : link_.events(); }

void Attempt::OnReady() {
  if (!dial_.has_value()) link_.OnReady();
}

}  // namespace edl::ps_client
