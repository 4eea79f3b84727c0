#include "client/master_client.h"

#include <gtest/gtest.h>

#include "client/testing/fake_master_service.h"

namespace edl::client {
namespace {

using namespace std::chrono_literals;

TEST(MasterClient, BringsTheMastersAnswers) {
  FakeMasterService master("secret");
  master.SetView({.name = "iris", .state = job::JobState::kRunning});
  master.SetLedger("{}");
  MasterClient client(master.address(), "secret");

  const Result<job::JobView> view = client.GetJob(10s);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->name, "iris");
  EXPECT_EQ(client.GetLedger(10s).value(), "{}");
}

TEST(MasterClient, CarriesWhatTheUserWants) {
  FakeMasterService master("secret");
  MasterClient client(master.address(), "secret");

  EXPECT_TRUE(client.Scale(5, 10s).ok());
  EXPECT_TRUE(client.Stop("elasticdl stop", 10s).ok());

  EXPECT_EQ(master.scaled_to(), 5);
  EXPECT_EQ(master.stop_reason(), "elasticdl stop");
}

TEST(MasterClient, IsRefusedWithAnotherJobsToken) {
  FakeMasterService master("secret");
  MasterClient client(master.address(), "other");

  EXPECT_EQ(client.GetJob(10s).status().code(), Code::kUnauthenticated);
}

TEST(MasterClient, SaysThatNobodyIsThere) {
  std::string address;
  {
    FakeMasterService master("secret");
    address = master.address();
  }
  MasterClient client(address, "secret");

  EXPECT_EQ(client.GetJob(10s).status().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace edl::client
