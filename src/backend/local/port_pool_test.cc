#include "backend/local/port_pool.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/testing/status_matchers.h"

namespace edl::backend::local {
namespace {

constexpr uint32_t kSeed = 77;
constexpr PortRange kEphemeral{32768, 60999};

enum class Reuse { kNo, kYes };

// A server that listens on a port of 127.0.0.1. Invalid if the port is in use.
FileDescriptor Listen(int port, Reuse reuse = Reuse::kNo) {
  FileDescriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = reuse == Reuse::kYes ? 1 : 0;
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool listens =
      bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
      listen(listener.get(), 1) == 0;
  return listens ? std::move(listener) : FileDescriptor();
}

TEST(PortPool, GivesPortsOutsideOfTheEphemeralRange) {
  PortPool pool({10000, 65000}, kSeed);

  const Result<int> port = pool.Reserve();

  ASSERT_OK(port);
  EXPECT_GT(*port, 65000);
}

TEST(PortPool, TakesOneWithinTheRangeWhenThereIsNoOther) {
  PortPool pool({1024, 65535}, kSeed);

  EXPECT_OK(pool.Reserve());
}

TEST(PortPool, GivesTwoJobsDifferentPortsWhateverTheirHomes) {
  PortPool one(kEphemeral, kSeed);
  PortPool other(kEphemeral, kSeed);

  std::set<int> ports;
  for (int n = 0; n < 5; ++n) {
    ports.insert(one.Reserve().value());
    ports.insert(other.Reserve().value());
  }

  EXPECT_EQ(ports.size(), 10);
}

TEST(PortPool, SpreadsTheFirstPortsOfJobs) {
  constexpr int kJobs = 200;
  constexpr int kCrowd = 500;
  std::vector<int> firsts;
  for (uint32_t job = 0; job < kJobs; ++job) {
    // Evenly spread seeds, half of which would be inside of the ephemeral range.
    PortPool pool(kEphemeral, job * (0xFFFFFFFFU / kJobs));
    firsts.push_back(pool.Reserve().value());
  }

  for (const int port : firsts) {
    const auto near = std::count_if(firsts.begin(), firsts.end(),
                                    [&](int other) { return std::abs(other - port) < kCrowd; });
    EXPECT_LT(near, kJobs / 10) << "around port " << port;
  }
}

TEST(PortPool, GivesPortsBackWithItsEnd) {
  const int port = PortPool(kEphemeral, kSeed).Reserve().value();

  EXPECT_EQ(PortPool(kEphemeral, kSeed).Reserve().value(), port);
}

TEST(PortPool, GivesAReleasedPortToAnotherJob) {
  PortPool one(kEphemeral, kSeed);
  const int port = one.Reserve().value();

  one.Release(port);

  EXPECT_EQ(PortPool(kEphemeral, kSeed).Reserve().value(), port);
}

TEST(PortPool, PassesOverAPortThatSomebodyListensOn) {
  const int port = PortPool(kEphemeral, kSeed).Reserve().value();
  const FileDescriptor listener = Listen(port);
  ASSERT_TRUE(listener.valid());

  EXPECT_NE(PortPool(kEphemeral, kSeed).Reserve().value(), port);
}

TEST(PortPool, LeavesAReservedPortToAnyServer) {
  PortPool pool(kEphemeral, kSeed);

  EXPECT_TRUE(Listen(pool.Reserve().value()).valid());
}

TEST(PortPool, KeepsABoundPortForServersThatReuseTheirAddress) {
  PortPool pool(kEphemeral, kSeed);
  const int port = pool.ReserveAndBind().value();

  EXPECT_FALSE(Listen(port).valid()) << "a stranger";
  for (int start = 0; start < 3; ++start) EXPECT_TRUE(Listen(port, Reuse::kYes).valid());
}

TEST(PortPool, ReservesAGivenPortForOneJob) {
  const int port = PortPool(kEphemeral, kSeed).Reserve().value();
  PortPool pool(kEphemeral, kSeed);

  EXPECT_OK(pool.ReserveAndBindPort(port));

  EXPECT_FALSE(Listen(port).valid()) << "a stranger";
  EXPECT_TRUE(Listen(port, Reuse::kYes).valid());
  const Status taken = PortPool(kEphemeral, kSeed).ReserveAndBindPort(port);
  EXPECT_THAT(taken, StatusIs(Code::kUnavailable));
  EXPECT_THAT(taken.message(), testing::HasSubstr("another job has reserved"));
}

TEST(PortPool, RefusesAGivenPortThatSomebodyListensOn) {
  const int port = PortPool(kEphemeral, kSeed).Reserve().value();
  const FileDescriptor listener = Listen(port, Reuse::kYes);
  ASSERT_TRUE(listener.valid());

  EXPECT_THAT(PortPool(kEphemeral, kSeed).ReserveAndBindPort(port), StatusIs(Code::kUnavailable));
}

}  // namespace
}  // namespace edl::backend::local
