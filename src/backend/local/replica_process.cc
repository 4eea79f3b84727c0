#include "backend/local/replica_process.h"

#include <algorithm>
#include <array>

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace edl::backend::local {

void KeepOnly(std::vector<int*> kept) {
  // First moves the descriptors away from their final numbers.
  const int first_free = 3 + static_cast<int>(kept.size());
  for (int* fd : kept) *fd = fcntl(*fd, F_DUPFD_CLOEXEC, first_free);
  int next = 3;
  for (int* fd : kept) {
    if (*fd >= 0) *fd = dup3(*fd, next, O_CLOEXEC);
    ++next;
  }
  close_range(static_cast<unsigned>(next), ~0U, 0);
}

Result<ReplicaProcess> ReplicaProcess::Start(const ProcessSpec& spec) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return Errno("making a socket for a new process");
  }
  FileDescriptor ours(ends[0]);
  FileDescriptor theirs(ends[1]);
  const pid_t shim = fork();
  if (shim < 0) return Errno("forking for '{}'", spec.log_name);
  if (shim == 0) RunShim(spec, std::move(theirs));
  return ReplicaProcess(shim, std::move(ours));
}

Result<ShimReport> ReplicaProcess::Receive() const {
  ShimReport report;
  while (true) {
    const ssize_t got = recv(socket_.get(), &report, sizeof(report), MSG_DONTWAIT);
    if (got == static_cast<ssize_t>(sizeof(report))) return report;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return Unavailable("shim {} has not reported yet", shim_);
    return NotFound("shim {} has exited", shim_);
  }
}

Result<ShimReport> ReplicaProcess::Await(std::chrono::milliseconds at_most) const {
  pollfd ready{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  while (poll(&ready, 1, static_cast<int>(at_most.count())) < 0 && errno == EINTR) {
  }
  return Receive();
}

void ReplicaProcess::Stop(std::chrono::milliseconds grace) const {
  const StopRequest request{.grace_ms = grace.count()};
  // If the shim has exited, its program has ended too.
  (void)send(socket_.get(), &request, sizeof(request), MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace edl::backend::local
