#include "wire/doorbell.h"

#include <array>
#include <cerrno>
#include <cstddef>

#include <sys/socket.h>

namespace edl::wire {

void Doorbell::Ring() {
  const std::byte ring{};
  ssize_t sent = 0;
  do {
    sent = send(socket_.get(), &ring, sizeof(ring), MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  // EAGAIN: enough rings are queued to wake the other end.
  if (sent < 0 && errno != EAGAIN) is_alone_ = true;
}

void Doorbell::Answer() {
  // One call reads all rings of a correct peer. A malicious peer cannot keep this thread busy.
  std::array<std::byte, 4096> rings;  // NOLINT: filled by recv
  const ssize_t got = recv(socket_.get(), rings.data(), rings.size(), MSG_DONTWAIT);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) is_alone_ = true;
}

}  // namespace edl::wire
