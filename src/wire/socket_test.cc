#include "wire/socket.h"

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/testing/await.h"
#include "base/testing/status_matchers.h"
#include "wire/testing/sockets.h"

namespace edl::wire {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

std::string OurName() { return fmt::format("edl-socket-test-{}", getpid()); }

bool SendsAtOnce(const FileDescriptor& socket) {
  int value = 0;
  socklen_t size = sizeof(value);
  return getsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &value, &size) == 0 && value != 0;
}

int OptionOf(const FileDescriptor& socket, int level, int option) {
  int value = -1;
  socklen_t size = sizeof(value);
  return getsockopt(socket.get(), level, option, &value, &size) == 0 ? value : -1;
}

// How long a connection outlives a peer that vanished without a word.
void ExpectToNoticeASilentPeer(const FileDescriptor& socket) {
  EXPECT_NE(OptionOf(socket, SOL_SOCKET, SO_KEEPALIVE), 0);
  EXPECT_EQ(OptionOf(socket, IPPROTO_TCP, TCP_KEEPIDLE), 3);
  EXPECT_EQ(OptionOf(socket, IPPROTO_TCP, TCP_KEEPINTVL), 2);
  EXPECT_EQ(OptionOf(socket, IPPROTO_TCP, TCP_KEEPCNT), 3);
  EXPECT_EQ(OptionOf(socket, IPPROTO_TCP, TCP_USER_TIMEOUT), 10'000);
}

bool HasIpv6() {
  const Result<TcpListener> listener = ListenTcp("::1", 0);
  return listener.ok();
}

TEST(Tcp, ReportsThePortOnWhichItListens) {
  const Result<TcpListener> listener = ListenTcp("127.0.0.1", 0);
  ASSERT_OK(listener);
  ASSERT_NE(listener->port, 0);

  const Result<FileDescriptor> client = ConnectTcp("127.0.0.1", listener->port, seconds(30));
  ASSERT_OK(client);

  const FileDescriptor server = AcceptNext(listener->socket);
  EXPECT_TRUE(SendsAtOnce(*client));
  EXPECT_TRUE(SendsAtOnce(server));
}

TEST(Tcp, NoticesAPeerThatVanishedAtBothEnds) {
  const Result<TcpListener> listener = ListenTcp("127.0.0.1", 0);
  ASSERT_OK(listener);
  const Result<FileDescriptor> client = ConnectTcp("127.0.0.1", listener->port, seconds(30));
  ASSERT_OK(client);
  ExpectToNoticeASilentPeer(*client);
  ExpectToNoticeASilentPeer(AcceptNext(listener->socket));

  auto dial = TcpDial::Start("localhost", listener->port, 0);
  ASSERT_OK(dial);
  Result<std::optional<FileDescriptor>> dialled = std::optional<FileDescriptor>();
  while (dialled.ok() && !dialled->has_value()) {
    pollfd ready{.fd = dial->fd(), .events = POLLOUT, .revents = 0};
    ASSERT_EQ(poll(&ready, 1, 30'000), 1) << "no connection within 30 s";
    dialled = dial->Continue();
  }
  ASSERT_OK(dialled);
  ExpectToNoticeASilentPeer(**dialled);
}

TEST(Tcp, ADialThatIsRefusedSaysSo) {
  uint16_t port = 0;
  {
    const Result<TcpListener> listener = ListenTcp("127.0.0.1", 0);
    ASSERT_OK(listener);
    port = listener->port;
  }
  auto dial = TcpDial::Start("127.0.0.1", port, 3);
  Status refused = dial.status();
  ASSERT_OK(AwaitPolling("the refusal", [&] {
    if (refused.ok()) refused = dial->Continue().status();
    return !refused.ok();
  }));
  EXPECT_THAT(refused, StatusIs(Code::kUnavailable));
  EXPECT_THAT(refused.message(), HasSubstr(std::to_string(port)));
}

TEST(Tcp, SupportsIpv6) {
  if (!HasIpv6()) GTEST_SKIP() << "no IPv6 here";
  const Result<TcpListener> listener = ListenTcp("::1", 0);
  ASSERT_OK(listener);
  EXPECT_OK(ConnectTcp("::1", listener->port, seconds(30)));
}

TEST(Tcp, ListensOnAnyAddressOfBothFamilies) {
  const Result<TcpListener> listener = ListenTcp("", 0);
  ASSERT_OK(listener);
  EXPECT_OK(ConnectTcp("127.0.0.1", listener->port, seconds(30)));
  if (HasIpv6()) {
    EXPECT_OK(ConnectTcp("::1", listener->port, seconds(30)));
  }
}

TEST(Tcp, NamesThePortThatIsTaken) {
  const Result<TcpListener> one = ListenTcp("127.0.0.1", 0);
  ASSERT_OK(one);

  const Result<TcpListener> other = ListenTcp("127.0.0.1", one->port);

  EXPECT_THAT(other, StatusIs(Code::kAlreadyExists));
  EXPECT_THAT(other.status().message(), HasSubstr(fmt::format("127.0.0.1:{}", one->port)));
}

TEST(Tcp, NamesTheAddressIfNoServerListens) {
  Result<TcpListener> listener = ListenTcp("127.0.0.1", 0);
  ASSERT_OK(listener);
  listener->socket.Close();

  const Status status = ConnectTcp("127.0.0.1", listener->port, seconds(30)).status();

  EXPECT_THAT(status, StatusIs(Code::kUnavailable));
  EXPECT_THAT(status.message(), HasSubstr(fmt::format("127.0.0.1:{}", listener->port)));
}

TEST(Tcp, WaitsForAnAnswerNoLongerThanItWasTold) {
  const Result<TcpListener> listener = ListenTcp("127.0.0.1", 0);
  ASSERT_OK(listener);
  ASSERT_EQ(listen(listener->socket.get(), 0), 0);  // a place for one, then none is answered

  std::vector<FileDescriptor> queue;
  Status status;
  while (status.ok() && queue.size() < 100) {
    Result<FileDescriptor> client = ConnectTcp("127.0.0.1", listener->port, milliseconds(20));
    status = client.status();
    if (client.ok()) queue.push_back(*std::move(client));
  }

  EXPECT_THAT(status, StatusIs(Code::kDeadlineExceeded)) << status;
  EXPECT_THAT(status.message(), HasSubstr(fmt::format("127.0.0.1:{}", listener->port)));
}

TEST(Tcp, NamesThePeerThatHasClosed) {
  const Result<TcpListener> listener = ListenTcp("127.0.0.1", 0);
  ASSERT_OK(listener);
  Result<FileDescriptor> client = ConnectTcp("127.0.0.1", listener->port, seconds(30));
  ASSERT_OK(client);
  SocketStream stream(*std::move(client));
  AcceptNext(listener->socket).Close();

  pollfd wait{.fd = stream.fd(), .events = POLLIN};
  ASSERT_EQ(poll(&wait, 1, 30'000), 1);
  char byte = 0;
  const iovec room{.iov_base = &byte, .iov_len = 1};
  const Status status = stream.Read({&room, 1}).status();

  EXPECT_THAT(status, StatusIs(Code::kUnavailable));
  EXPECT_THAT(status.message(), HasSubstr(fmt::format("127.0.0.1:{}", listener->port)));
}

TEST(Unix, AcceptsNothingBeforeAClientConnects) {
  const Result<FileDescriptor> listener = ListenUnix(OurName());
  ASSERT_OK(listener);
  const Result<std::optional<FileDescriptor>> nobody = Accept(*listener);
  ASSERT_OK(nobody);
  EXPECT_FALSE(nobody->has_value());

  const Result<FileDescriptor> client = ConnectUnix(OurName());

  ASSERT_OK(client);
  EXPECT_TRUE(AcceptNext(*listener).valid());
}

TEST(Unix, GivesANameToOneOnly) {
  const Result<FileDescriptor> listener = ListenUnix(OurName());
  ASSERT_OK(listener);
  EXPECT_THAT(ListenUnix(OurName()), StatusIs(Code::kAlreadyExists));
}

TEST(Unix, NamesTheAddressIfNoServerListens) {
  const Status status = ConnectUnix(OurName()).status();
  EXPECT_THAT(status, StatusIs(Code::kUnavailable));
  EXPECT_THAT(status.message(), HasSubstr(OurName()));
}

TEST(Unix, RefusesNamesThatDoNotFit) {
  EXPECT_OK(ListenUnix(std::string(107, 'x')));
  EXPECT_THAT(ListenUnix(std::string(108, 'x')), StatusIs(Code::kInvalidArgument));
  EXPECT_THAT(ConnectUnix(""), StatusIs(Code::kInvalidArgument));
}

}  // namespace
}  // namespace edl::wire
