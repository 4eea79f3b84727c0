#include "wire/stream.h"

#include <chrono>
#include <string>

#include <unistd.h>

#include "wire/ring.h"
#include "wire/socket.h"
#include "wire/testing/conformance.h"
#include "wire/testing/sockets.h"

namespace edl::wire {
namespace {

std::string OurName() { return fmt::format("edl-stream-test-{}", getpid()); }

StreamPair MakeTcp() {
  const Result<TcpListener> listener = ListenTcp("localhost", 0);
  Result<FileDescriptor> client = ConnectTcp("localhost", listener->port, std::chrono::seconds(30));
  return {.client = std::make_unique<SocketStream>(*std::move(client)),
          .server = std::make_unique<SocketStream>(AcceptNext(listener->socket))};
}

StreamPair MakeUnix() {
  const Result<FileDescriptor> listener = ListenUnix(OurName());
  Result<FileDescriptor> client = ConnectUnix(OurName());
  return {.client = std::make_unique<SocketStream>(*std::move(client)),
          .server = std::make_unique<SocketStream>(AcceptNext(*listener))};
}

MakeStreams MakeRing(size_t capacity) {
  return [capacity]() -> StreamPair {
    const Result<FileDescriptor> listener = ListenUnix(OurName());
    Result<std::unique_ptr<Stream>> client = ConnectRing(OurName(), capacity);
    Result<std::unique_ptr<Stream>> server = AcceptRing(AcceptNext(*listener));
    return {.client = *std::move(client), .server = *std::move(server)};
  };
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Tcp, StreamConformance, testing::Values(MakeStreams(&MakeTcp)));
INSTANTIATE_TEST_SUITE_P(Unix, StreamConformance, testing::Values(MakeStreams(&MakeUnix)));
INSTANTIATE_TEST_SUITE_P(Ring, StreamConformance, testing::Values(MakeRing(kRingBytes)));
INSTANTIATE_TEST_SUITE_P(SmallRing, StreamConformance, testing::Values(MakeRing(4096)));

}  // namespace edl::wire
