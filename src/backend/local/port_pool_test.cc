#include "backend/local/port_pool.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/testing/temporary_folder.h"

namespace edl::backend::local {
namespace {

constexpr uint32_t kSeed = 77;
constexpr PortRange kEphemeral{32768, 60999};

TEST(PortPool, GivesPortsOutsideOfTheEphemeralRange) {
  const TemporaryFolder folder;
  const PortRange almost_all{10000, 65000};
  Result<PortPool> pool = PortPool::Open(folder.path(), almost_all, kSeed);
  ASSERT_TRUE(pool.ok()) << pool.status();

  const Result<int> port = pool->Reserve();

  ASSERT_TRUE(port.ok()) << port.status();
  EXPECT_GT(*port, 65000);
}

TEST(PortPool, TakesOneWithinTheRangeWhenThereIsNoOther) {
  const TemporaryFolder folder;
  Result<PortPool> pool = PortPool::Open(folder.path(), {1024, 65535}, kSeed);
  ASSERT_TRUE(pool.ok()) << pool.status();

  EXPECT_TRUE(pool->Reserve().ok());
}

TEST(PortPool, GivesTwoJobsDifferentPorts) {
  const TemporaryFolder folder;
  Result<PortPool> one = PortPool::Open(folder.path(), kEphemeral, kSeed);
  Result<PortPool> other = PortPool::Open(folder.path(), kEphemeral, kSeed);
  ASSERT_TRUE(one.ok() && other.ok());

  std::set<int> ports;
  for (int n = 0; n < 5; ++n) {
    ports.insert(one->Reserve().value());
    ports.insert(other->Reserve().value());
  }

  EXPECT_EQ(ports.size(), 10);
}

TEST(PortPool, GivesPortsBackWithItsEnd) {
  const TemporaryFolder folder;
  const int port = PortPool::Open(folder.path(), kEphemeral, kSeed)->Reserve().value();

  EXPECT_EQ(PortPool::Open(folder.path(), kEphemeral, kSeed)->Reserve().value(), port);
}

TEST(PortPool, PassesOverAPortThatSomebodyListensOn) {
  const TemporaryFolder folder;
  const int port = PortPool::Open(folder.path(), kEphemeral, kSeed)->Reserve().value();
  const FileDescriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(listener.get(), 1), 0);

  EXPECT_NE(PortPool::Open(folder.path(), kEphemeral, kSeed)->Reserve().value(), port);
}

TEST(PortPool, SaysWhichFolderItCannotMake) {
  const Result<PortPool> pool = PortPool::Open("/proc/no/ports", kEphemeral, kSeed);

  EXPECT_NE(pool.status().message().find("/proc/no/ports"), std::string::npos);
}

}  // namespace
}  // namespace edl::backend::local
