#include "master/service/listener.h"

#include <array>
#include <filesystem>
#include <string>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/testing/status_matchers.h"
#include "master/service/compat_admission.h"
#include "master/testing/core_fixture.h"
#include "master/testing/served_master.h"

namespace edl::master {
namespace {

constexpr uid_t kNobody = 65534;

int Option(int fd, int level, int option) {
  int value = -1;
  socklen_t size = sizeof(value);
  EXPECT_EQ(getsockopt(fd, level, option, &value, &size), 0);
  return value;
}

int PortOf(int fd) {
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  return ntohs(address.sin_port);
}

// A loopback connection to a listening socket.
class Connected {
 public:
  // `client`: the address of the client.
  explicit Connected(uid_t client = geteuid()) {
    sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    watched_ = WatchPeersOf(PortOf(listener_));
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    const uid_t self = geteuid();
    if (client != self) {
      EXPECT_EQ(seteuid(client), 0);
    }
    client_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client != self) {
      EXPECT_EQ(seteuid(self), 0);
    }
    EXPECT_EQ(connect(client_, reinterpret_cast<sockaddr*>(&address), size), 0);
    accepted_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  }
  ~Connected() {
    for (const int fd : {listener_, client_, accepted_}) close(fd);
  }

  // The client in the notation of gRPC.
  std::string peer() const { return fmt::format("ipv4:127.0.0.1:{}", PortOf(client_)); }
  int accepted() const { return accepted_; }
  int watched() const { return watched_; }

 private:
  int listener_ = -1;
  int client_ = -1;
  int accepted_ = -1;
  int watched_ = 0;
};

TEST(WatchPeersOf, LetsTheKernelNoticeMachinesThatVanish) {
  const Connected connection;

  EXPECT_EQ(connection.watched(), 1);
  EXPECT_EQ(Option(connection.accepted(), SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(Option(connection.accepted(), IPPROTO_TCP, TCP_KEEPIDLE), 1);
  EXPECT_EQ(Option(connection.accepted(), IPPROTO_TCP, TCP_USER_TIMEOUT), 2500);
}

TEST(WatchPeersOf, HoldsForTheConnectionsOfTheServer) {
  ServedMaster master(WorkersOnly(1), "0.0.0.0:0");
  const auto channel = master.Connect();
  ASSERT_TRUE(channel->WaitForConnected(std::chrono::system_clock::now() + seconds(30)));

  int accepted = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename().string());
    sockaddr_storage peer{};
    socklen_t size = sizeof(peer);
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    if (peer.ss_family != AF_INET && peer.ss_family != AF_INET6) continue;
    if (PortOf(fd) != master.port()) continue;
    ++accepted;
    EXPECT_EQ(Option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    EXPECT_EQ(Option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 2500);
  }
  EXPECT_GE(accepted, 1);
}

TEST(OwnerOf, NamesTheUserAtTheOtherEnd) {
  const Connected connection;

  EXPECT_EQ(OwnerOf(connection.peer()), geteuid());
  EXPECT_EQ(OwnerOf("ipv4:127.0.0.1:1"), std::nullopt);
  EXPECT_EQ(OwnerOf("unix:/tmp/x"), std::nullopt);
  EXPECT_EQ(OwnerOf(""), std::nullopt);
}

TEST(CompatAdmission, TakesCallsOfTheJobsUserOnly) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can have a socket of another user";
  CoreFixture master;
  CompatAdmission admission(master.spec(), /*on_this_machine=*/true);
  const Connected ours;
  const Connected foreign(kNobody);

  EXPECT_OK(admission.Check(master.core(), ours.peer()));
  EXPECT_THAT(admission.Check(master.core(), foreign.peer()), StatusIs(Code::kPermissionDenied));
}

TEST(CompatAdmission, RejectsLoopbackPeersOnACluster) {
  CoreFixture master;
  CompatAdmission admission(master.spec(), /*on_this_machine=*/false);
  const Connected proxy;

  EXPECT_THAT(admission.Check(master.core(), proxy.peer()), StatusIs(Code::kPermissionDenied));
}

}  // namespace
}  // namespace edl::master
