#include "wire/stream.h"

#include <chrono>
#include <string>

#include <unistd.h>

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

}  // namespace

INSTANTIATE_TEST_SUITE_P(Tcp, StreamConformance, testing::Values(MakeStreams(&MakeTcp)));
INSTANTIATE_TEST_SUITE_P(Unix, StreamConformance, testing::Values(MakeStreams(&MakeUnix)));

}  // namespace edl::wire
