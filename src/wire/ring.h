#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/file.h"
#include "base/status.h"
#include "wire/stream.h"

// Streams through memory that two processes of a host share: a ring of bytes for each direction,
// and a Doorbell. docs/formats/wire.md has the layout and the protocol.
//
// Read and Write have one error more than Stream declares. DataLoss: the peer wrote an impossible
// counter. All later calls fail the same way.
namespace edl::wire {

// Capacity of a ring.
inline constexpr size_t kRingBytes = size_t{1} << 20;

// Makes the memory and passes it to the process that listens on the Unix name. Unavailable: no
// process listens there. PermissionDenied: the listener runs neither as root nor as this process's
// user: it may have taken the name to intercept data.
Result<std::unique_ptr<Stream>> ConnectRing(const std::string& name, size_t capacity = kRingBytes);

// The listener's end of such a stream. Call this when the accepted socket is readable.
// InvalidArgument: the peer did not send a ring. Unavailable: the peer sent nothing, or has exited.
Result<std::unique_ptr<Stream>> AcceptRing(FileDescriptor socket);

}  // namespace edl::wire
