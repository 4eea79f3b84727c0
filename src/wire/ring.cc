#include "wire/ring.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/byte_ring.h"
#include "wire/doorbell.h"
#include "wire/ring_memory.h"
#include "wire/socket.h"

namespace edl::wire {
namespace {

using Direction = RingMemory::Direction;

bool HasBytes(std::span<const iovec> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [](const iovec& part) { return part.iov_len > 0; });
}

class RingStream final : public Stream {
 public:
  RingStream(FileDescriptor socket, RingMemory memory, Direction read, Direction write)
      : doorbell_(std::move(socket)),
        memory_(std::move(memory)),
        reader_(memory_.control(read), memory_.bytes(read), doorbell_),
        writer_(memory_.control(write), memory_.bytes(write), doorbell_) {}

  Result<size_t> Read(std::span<const iovec> buffers) override {
    EDL_RETURN_IF_ERROR(broken_);
    if (!HasBytes(buffers)) return size_t{0};
    const bool was_alone = doorbell_.PeerClosed();  // before the ring is found empty
    Result<size_t> size = reader_.Read(buffers);
    if (!size.ok()) return broken_ = size.status();
    if (*size == 0 && was_alone) return Alone();
    return size;
  }

  Result<size_t> Write(std::span<const iovec> pieces) override {
    EDL_RETURN_IF_ERROR(broken_);
    if (doorbell_.PeerClosed()) return Alone();
    if (!HasBytes(pieces)) return size_t{0};
    Result<size_t> size = writer_.Write(pieces);
    if (!size.ok()) return broken_ = size.status();
    return size;
  }

  int fd() const override { return doorbell_.fd(); }
  // POLLHUP, the exit of the other end, is always reported.
  short EventsFor(Interest interest) const override {
    return interest == Interest::kNothing ? 0 : POLLIN;
  }
  void OnReady() override { doorbell_.Answer(); }
  bool IsPeerGone() const override { return doorbell_.PeerClosed(); }

 private:
  static Status Alone() {
    return Unavailable("the process at the other end of the shared memory has exited or closed it");
  }

  Doorbell doorbell_;
  const RingMemory memory_;
  RingReader reader_;
  RingWriter writer_;
  Status broken_;
};

Status CheckListener(int socket, const std::string& name) {
  ucred listener{};
  socklen_t size = sizeof(listener);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &listener, &size) != 0) {
    return Errno("getting the user that listens on the Unix name {}", name);
  }
  if (listener.uid == 0 || listener.uid == geteuid()) return Ok();
  return PermissionDenied(
      "user {} listens on the Unix name {}, and this process runs as user {}: not connecting",
      listener.uid, name, geteuid());
}

Status HandOver(int socket, int file) {
  std::byte byte{};
  iovec part{.iov_base = &byte, .iov_len = sizeof(byte)};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(file))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(file));
  std::memcpy(CMSG_DATA(rights), &file, sizeof(file));
  if (sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(byte)) return Ok();
  return Errno("sending a ring");
}

// Takes all of them, so that unexpected files are closed.
std::vector<FileDescriptor> FilesIn(msghdr& message) {
  std::vector<FileDescriptor> files;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = 0; at + sizeof(int) <= part->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
      int file = -1;
      std::memcpy(&file, CMSG_DATA(part) + at, sizeof(file));
      files.emplace_back(file);
    }
  }
  return files;
}

Result<FileDescriptor> TakeOver(int socket) {
  std::byte byte{};
  iovec part{.iov_base = &byte, .iov_len = sizeof(byte)};
  // The kernel closes files that do not fit, and sets MSG_CTRUNC.
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(2 * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return Errno("receiving a ring");
  std::vector<FileDescriptor> files = FilesIn(message);
  if (got == 0) return Unavailable("the peer closed the connection before it sent a ring");
  const bool too_many = (message.msg_flags & MSG_CTRUNC) != 0;
  if (files.size() != 1 || too_many) {
    return InvalidArgument("expected one memfd with a ring, found {} files{}", files.size(),
                           too_many ? " and more than can be received" : "");
  }
  return std::move(files.front());
}

}  // namespace

Result<std::unique_ptr<Stream>> ConnectRing(const std::string& name, size_t capacity) {
  EDL_ASSIGN_OR_RETURN(FileDescriptor socket, ConnectUnix(name));
  EDL_RETURN_IF_ERROR(CheckListener(socket.get(), name));
  EDL_ASSIGN_OR_RETURN(const FileDescriptor file, MakeRingFile(capacity));
  EDL_ASSIGN_OR_RETURN(RingMemory memory, RingMemory::Map(file));
  EDL_RETURN_IF_ERROR(HandOver(socket.get(), file.get()));
  return std::unique_ptr<Stream>(std::make_unique<RingStream>(
      std::move(socket), std::move(memory), Direction::kToClient, Direction::kToServer));
}

Result<std::unique_ptr<Stream>> AcceptRing(FileDescriptor socket) {
  EDL_ASSIGN_OR_RETURN(const FileDescriptor file, TakeOver(socket.get()));
  EDL_ASSIGN_OR_RETURN(RingMemory memory, RingMemory::Map(file));
  return std::unique_ptr<Stream>(std::make_unique<RingStream>(
      std::move(socket), std::move(memory), Direction::kToServer, Direction::kToClient));
}

}  // namespace edl::wire
