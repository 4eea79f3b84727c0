#include "backend/kubernetes/status_publisher.h"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/kubernetes/kubernetes_jobs.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/testing/await.h"
#include "base/testing/status_matchers.h"
#include "kube/resource.h"
#include "kube/testing/api_server.h"
#include "kube/timing.h"

namespace edl::backend::kubernetes {
namespace {

const kube::ObjectKey kMap{"ml", "elasticdl-iris-master"};
constexpr const char* kWrites = "PATCH";
constexpr std::chrono::seconds kLong{60};

class StatusPublisherTest : public testing::Test {
 protected:
  StatusPublisherTest() { server_.Put(kube::kConfigMaps, kube::Object(kube::kConfigMaps, kMap)); }

  std::string Published() {
    const auto map = server_.Get(kube::kConfigMaps, kMap);
    EXPECT_OK(map);
    if (!map.ok()) return "";
    return TextIn(FieldAt(map->fields(), {"data"}), std::string(kStatusKey).c_str());
  }

  kube::ApiServer server_;
  SystemClock clock_;
  kube::Connection connection_{server_.config(), clock_, {}};
  StatusPublisher publisher_{connection_, kube::RealTiming(clock_), kMap};
};

TEST_F(StatusPublisherTest, WritesInTheBackground) {
  publisher_.Publish("one");

  EXPECT_OK(AwaitPolling("the status in the ConfigMap", [&] { return Published() == "one"; }));
}

TEST_F(StatusPublisherTest, FlushWaitsForTheNewestStatus) {
  for (const char* status : {"one", "two", "three"}) publisher_.Publish(status);

  EXPECT_TRUE(publisher_.Flush(kLong));

  EXPECT_EQ(Published(), "three");
}

TEST_F(StatusPublisherTest, FlushReturnsAtOnceWhenEverythingIsWritten) {
  publisher_.Publish("one");
  ASSERT_TRUE(publisher_.Flush(kLong));

  EXPECT_TRUE(publisher_.Flush(std::chrono::milliseconds(0)));

  EXPECT_EQ(server_.CountRequests(kWrites), 1);
}

TEST_F(StatusPublisherTest, RepeatsAFailedWrite) {
  server_.Inject({.part = kWrites, .status = 503});
  publisher_.Publish("one");

  EXPECT_TRUE(publisher_.Flush(kLong));

  EXPECT_EQ(Published(), "one");
  EXPECT_EQ(server_.CountRequests(kWrites), 2);
}

TEST_F(StatusPublisherTest, WritesANewerStatusInsteadOfRepeatingAnOldOne) {
  server_.Inject({.part = kWrites, .status = 503});
  publisher_.Publish("old");
  server_.AwaitRequests(kWrites, 1);
  publisher_.Publish("new");

  EXPECT_TRUE(publisher_.Flush(kLong));

  EXPECT_EQ(Published(), "new");
  EXPECT_EQ(server_.CountRequests(kWrites), 2);
}

TEST_F(StatusPublisherTest, WaitsBetweenTwoWrites) {
  publisher_.Publish("one");
  ASSERT_OK(AwaitPolling("the first status", [&] { return Published() == "one"; }));
  const Time written = clock_.Now();
  publisher_.Publish("two");

  ASSERT_OK(AwaitPolling("the second status", [&] { return Published() == "two"; }));

  // The interval starts with the end of the first write, which this test sees a little later.
  EXPECT_GE(clock_.Now() - written, StatusPublisher::kInterval / 2);
}

TEST_F(StatusPublisherTest, FlushReportsThatTheServerDoesNotAnswer) {
  server_.Inject({.part = kWrites, .times = 1'000, .status = 503});
  publisher_.Publish("one");

  EXPECT_FALSE(publisher_.Flush(std::chrono::milliseconds(100)));

  EXPECT_EQ(Published(), "");
}

TEST(StatusPublisher, EndsWhileTheServerIsSilent) {
  kube::ApiServer server;
  const SystemClock clock;
  kube::Connection connection(server.config(), clock, {});
  server.Inject({.kind = kube::ApiServer::Fault::Kind::kSilent, .part = kWrites});
  const Time begun = clock.Now();
  {
    StatusPublisher publisher(connection, kube::RealTiming(clock), kMap);
    publisher.Publish("one");
    server.AwaitRequests(kWrites, 1);
  }
  EXPECT_LT(clock.Now() - begun, std::chrono::seconds(4)) << "it waited for the timeout of 5 s";
}

}  // namespace
}  // namespace edl::backend::kubernetes
