#include "kube/lease.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/testing/status_matchers.h"
#include "kube/testing/api_server.h"
#include "kube/testing/fake_timing.h"

namespace edl::kube {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const ObjectKey kKey{.ns = "ns", .name = "job"};

class LeaseTest : public testing::Test {
 protected:
  LeaseHolder Holder(const std::string& identity) {
    return LeaseHolder(connection_, fake_.timing(), {.key = kKey, .identity = identity});
  }
  nlohmann::json Spec() { return server_.Get(kLeases, kKey)->fields()["spec"]; }
  // Done in the wait of that number, from 1.
  void InWait(size_t number, std::function<void()> act) {
    fake_.set_on_wait([this, number, act = std::move(act)] {
      if (fake_.waits().size() == number) act();
    });
  }

  ApiServer server_;
  FakeTiming fake_;  // at 1970-01-02T00:00:00Z
  Connection connection_{server_.config(), fake_.clock(), {}};
  std::stop_source stop_;
};

TEST_F(LeaseTest, IsTakenWhereThereIsNone) {
  LeaseHolder one = Holder("one");
  EXPECT_FALSE(one.held());

  ASSERT_OK(one.Acquire({}));

  EXPECT_TRUE(one.held());
  EXPECT_EQ(Spec(), nlohmann::json::parse(R"({
    "holderIdentity": "one", "leaseDurationSeconds": 15, "leaseTransitions": 0,
    "acquireTime": "1970-01-02T00:00:00.000000Z", "renewTime": "1970-01-02T00:00:00.000000Z"})"));
  EXPECT_THAT(fake_.waits(), IsEmpty());
}

TEST_F(LeaseTest, IsKeptByRenewingIt) {
  LeaseHolder one = Holder("one");
  ASSERT_OK(one.Acquire({}));
  InWait(10, [this] { stop_.request_stop(); });

  EXPECT_OK(one.Keep(stop_.get_token()));

  EXPECT_TRUE(one.held());
  EXPECT_EQ(Spec()["renewTime"], "1970-01-02T00:00:18.000000Z");
  EXPECT_EQ(Spec()["acquireTime"], "1970-01-02T00:00:00.000000Z");
}

TEST_F(LeaseTest, IsWaitedForUntilItsHolderHasShownNoLifeForItsDuration) {
  LeaseHolder dead = Holder("dead");
  ASSERT_OK(dead.Acquire({}));
  LeaseHolder next = Holder("next");
  std::vector<std::string> waited_for;
  fake_.set_on_wait([&] { EXPECT_FALSE(dead.held() && next.held()); });

  const Status got =
      next.Acquire({}, [&](const std::string& holder) { waited_for.push_back(holder); });

  EXPECT_OK(got);
  EXPECT_THAT(waited_for, ElementsAre("dead"));
  EXPECT_THAT(fake_.waits(), SizeIs(8)) << "of 2 s: the first after the 15 s";
  EXPECT_EQ(Spec()["holderIdentity"], "next");
  EXPECT_EQ(Spec()["leaseTransitions"], 1);
}

TEST_F(LeaseTest, IsNotTakenFromOneWhoseClockIsBehind) {
  Object lease(kLeases, kKey);
  lease.fields()["spec"] = {{"holderIdentity", "other"}, {"leaseDurationSeconds", 15}};
  const auto renew = [&](int number) {
    lease.fields()["spec"]["renewTime"] =
        fmt::format("1969-12-31T00:00:{:02}.000000Z", number);  // a day ago
    server_.Put(kLeases, lease);
  };
  renew(0);
  LeaseHolder one = Holder("one");
  fake_.set_on_wait([&] {
    const size_t number = fake_.waits().size();
    if (number <= 20) renew(static_cast<int>(number));
    EXPECT_FALSE(one.held());
  });

  EXPECT_OK(one.Acquire({}));

  EXPECT_THAT(fake_.waits(), SizeIs(28)) << "20 renewals, and the 15 s after the last";
}

TEST_F(LeaseTest, IsTakenBackAtOnceByTheSameHolder) {
  LeaseHolder before = Holder("pod");
  ASSERT_OK(before.Acquire({}));

  LeaseHolder restarted = Holder("pod");
  EXPECT_OK(restarted.Acquire({}));

  EXPECT_THAT(fake_.waits(), IsEmpty());
  EXPECT_EQ(Spec()["leaseTransitions"], 0);
}

TEST_F(LeaseTest, IsNotHeldWhileItCannotBeRenewedAndIsHeldAgainAfterwards) {
  LeaseHolder one = Holder("one");
  ASSERT_OK(one.Acquire({}));
  constexpr int kTries = 30;  // a minute
  server_.Inject({.times = kTries, .status = 500, .body = R"({"message":"etcd is away"})"});
  std::vector<bool> held;
  fake_.set_on_wait([&] {
    held.push_back(one.held());
    if (fake_.waits().size() == kTries + 3) stop_.request_stop();
  });
  std::vector<std::string> errors;

  const Status kept =
      one.Keep(stop_.get_token(), [&](const Status& error) { errors.push_back(error.message()); });

  EXPECT_OK(kept);
  EXPECT_TRUE(held[3]) << "8 s without a renewal";
  EXPECT_FALSE(held[6]) << "14 s: another may have it in a second";
  EXPECT_FALSE(held[kTries]);
  EXPECT_TRUE(held.back());
  EXPECT_THAT(errors, ElementsAre(HasSubstr("etcd is away")));
}

TEST_F(LeaseTest, IsLostWhenAnotherHadItMeanwhile) {
  LeaseHolder one = Holder("one");
  ASSERT_OK(one.Acquire({}));
  InWait(1, [this] {
    Object lease(kLeases, kKey);
    lease.fields()["spec"] = {
        {"holderIdentity", ""}, {"leaseDurationSeconds", 1}, {"leaseTransitions", 1}};
    server_.Put(kLeases, lease);
  });

  const Status lost = one.Keep({});

  EXPECT_THAT(lost, StatusIs(Code::kAborted));
  EXPECT_FALSE(one.held());
}

TEST_F(LeaseTest, IsLostWhenAnotherHasIt) {
  LeaseHolder one = Holder("one");
  ASSERT_OK(one.Acquire({}));
  InWait(1, [this] {
    Object lease(kLeases, kKey);
    lease.fields()["spec"] = {{"holderIdentity", "other"}, {"leaseDurationSeconds", 15}};
    server_.Put(kLeases, lease);
  });

  const Status lost = one.Keep({});

  EXPECT_THAT(lost, StatusIs(Code::kAborted));
  EXPECT_THAT(lost.message(), HasSubstr("held by 'other'"));
  EXPECT_FALSE(one.held());
}

TEST_F(LeaseTest, SurvivesAnOutageThatIsShortEnough) {
  LeaseHolder one = Holder("one");
  ASSERT_OK(one.Acquire({}));
  server_.Inject({.times = 2, .status = 500});
  server_.Inject({.kind = ApiServer::Fault::Kind::kBreak, .part = "PUT"});
  InWait(8, [this] { stop_.request_stop(); });

  EXPECT_OK(one.Keep(stop_.get_token()));
  EXPECT_TRUE(one.held());
}

TEST_F(LeaseTest, GoesToOneOfTwoThatAskAtOnce) {
  LeaseHolder one = Holder("one");
  server_.Inject({.part = "POST", .status = 409, .body = R"({"reason":"AlreadyExists"})"});
  InWait(1, [this] {
    Object lease(kLeases, kKey);
    lease.fields()["spec"] = {{"holderIdentity", "other"}, {"leaseDurationSeconds", 15}};
    server_.Put(kLeases, lease);
  });

  EXPECT_OK(one.Acquire({}));

  EXPECT_THAT(fake_.waits(), SizeIs(9)) << "one, and the 15 s";
}

TEST_F(LeaseTest, IsFreeAtOnceWhenGivenBack) {
  LeaseHolder one = Holder("one");
  ASSERT_OK(one.Acquire({}));

  EXPECT_OK(one.Release());

  EXPECT_FALSE(one.held());
  EXPECT_EQ(Spec()["holderIdentity"], "");
  LeaseHolder next = Holder("next");
  EXPECT_OK(next.Acquire({}));
  EXPECT_THAT(fake_.waits(), IsEmpty());
  EXPECT_OK(one.Release());
  EXPECT_EQ(Spec()["holderIdentity"], "next")
      << "a process that does not hold the lease does not release it";
}

TEST_F(LeaseTest, IsWaitedForWhereItIsForbiddenForNow) {
  server_.Inject(
      {.times = 3, .status = 403, .body = R"({"message":"User \"u\" cannot get leases"})"});
  LeaseHolder one = Holder("one");
  std::vector<std::string> errors;
  EXPECT_OK(one.Acquire({}, {}, [&](const Status& error) { errors.push_back(error.message()); }));
  EXPECT_THAT(errors, ElementsAre(HasSubstr("cannot get leases")));
}

TEST_F(LeaseTest, StopsWaitingWhenTold) {
  LeaseHolder dead = Holder("dead");
  ASSERT_OK(dead.Acquire({}));
  InWait(2, [this] { stop_.request_stop(); });
  EXPECT_THAT(Holder("one").Acquire(stop_.get_token()), StatusIs(Code::kCancelled));
}

}  // namespace
}  // namespace edl::kube
