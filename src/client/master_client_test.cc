#include "client/master_client.h"

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "client/testing/fake_master_service.h"

namespace edl::client {
namespace {

using namespace std::chrono_literals;

TEST(MasterClient, ReturnsTheMastersViewAndLedger) {
  FakeMasterService master("secret");
  master.SetView({.name = "iris", .state = job::JobState::kRunning});
  master.SetLedger("{}");
  MasterClient client(master.address(), "secret");

  const Result<job::JobView> view = client.GetJob(10s);
  ASSERT_OK(view);
  EXPECT_EQ(view->name, "iris");
  EXPECT_THAT(client.GetLedger(10s), IsOkAndHolds("{}"));
}

TEST(MasterClient, ReturnsTheCurvesOfTheSeriesThatItAsksFor) {
  FakeMasterService master("secret");
  master.SetCurves(R"({"series":[],"dropped_series":3})");
  MasterClient client(master.address(), "secret");

  const Result<telemetry::Curves> curves =
      client.GetTelemetry({.series = {"program.loss", "batches"}}, 10s);

  ASSERT_OK(curves);
  EXPECT_EQ(curves->dropped_series, 3);
  EXPECT_EQ(master.asked_series(), (std::vector<std::string>{"program.loss", "batches"}));
}

TEST(MasterClient, SendsScaleAndStop) {
  FakeMasterService master("secret");
  MasterClient client(master.address(), "secret");

  EXPECT_OK(client.Scale(5, 10s));
  EXPECT_OK(client.Stop("elasticdl stop", 10s));

  EXPECT_EQ(master.scaled_to(), 5);
  EXPECT_EQ(master.stop_reason(), "elasticdl stop");
}

TEST(MasterClient, IsRejectedWithTheTokenOfAnotherJob) {
  FakeMasterService master("secret");
  MasterClient client(master.address(), "other");

  EXPECT_THAT(client.GetJob(10s), StatusIs(Code::kUnauthenticated));
}

TEST(MasterClient, ReportsAMasterThatDoesNotListen) {
  std::string address;
  {
    FakeMasterService master("secret");
    address = master.address();
  }
  MasterClient client(address, "secret");

  EXPECT_THAT(client.GetJob(10s), StatusIs(Code::kUnavailable));
}

}  // namespace
}  // namespace edl::client
