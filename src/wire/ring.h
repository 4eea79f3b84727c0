#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/file.h"
#include "base/status.h"
#include "wire/stream.h"

// Streams through memory that two processes of a host share: a ring of bytes for each direction,
// and a Unix socket by which either wakes the other and learns of its end. docs/formats/wire.md
// has the layout and the protocol.
//
// Besides what Stream says: a Read or Write that fails with DataLoss has found the other end
// claiming what cannot be, and so will all that follow.
namespace edl::wire {

// Bytes on their way in one direction.
inline constexpr size_t kRingBytes = size_t{1} << 20;

// Makes the memory and hands it to who listens on the Unix name. Unavailable: nobody does.
// PermissionDenied: it is neither root nor of this process's user, and may hold the name to be told
// what is meant for another.
Result<std::unique_ptr<Stream>> ConnectRing(const std::string& name, size_t capacity = kRingBytes);

// The other end of it. Call it when the accepted socket is readable. InvalidArgument: what came is
// no ring. Unavailable: nothing came, or the other end is gone already.
Result<std::unique_ptr<Stream>> AcceptRing(FileDescriptor socket);

}  // namespace edl::wire
