// Thousands of workers of one master: the answers that they get, and how the master's CPU time
// grows with their number.
#include <algorithm>
#include <ctime>
#include <functional>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

constexpr int kWorkers = 3'000;

class ThousandsOfWorkers : public testing::Test {
 protected:
  // In a few rounds, because the loop handles many events at a time.
  explicit ThousandsOfWorkers(int workers = kWorkers) : master_(WorkersOnly(workers)) {
    master_.Synced();
    for (int64_t id = 0; id < workers; ++id) {
      master_.core().OnReplicaEvent(
          {.name = NameOf(Worker(id)), .kind = job::ReplicaEvent::Kind::kRunning}, {});
    }
    master_.Commit();
    std::vector<Later<JoinReply>> joined(static_cast<size_t>(workers));
    for (int64_t id = 0; id < workers; ++id) {
      master_.core().master_api().Join({.replica = Worker(id)},
                                       joined[static_cast<size_t>(id)].reply());
    }
    master_.Commit();
    for (const Later<JoinReply>& reply : joined) sessions_.push_back(reply->incarnation);
  }

  Later<ReportAndLeaseReply> Ask(Incarnation session, uint64_t number,
                                 std::vector<ShardReport> reports, uint32_t at_most = 1) {
    Later<ReportAndLeaseReply> answer;
    master_.core().master_api().ReportAndLease({.call = master_.NextCall(),
                                                .incarnation = session,
                                                .number = number,
                                                .received = number - 1,
                                                .reports = std::move(reports),
                                                .dataset = kData,
                                                .lease_at_most = at_most,
                                                .wait = std::chrono::hours(1)},
                                               answer.reply());
    return answer;
  }

  // Lets time pass until `count` returns the number of workers, for at most a minute. Returns the
  // largest increase in one tick.
  int64_t MostInATick(const std::function<int64_t()>& count) {
    int64_t most = 0;
    int64_t before = count();
    for (int ticks = 0; ticks < 1200 && before < kWorkers; ++ticks) {
      master_.LetPass(std::chrono::milliseconds(50));
      most = std::max(most, count() - before);
      before = count();
    }
    return most;
  }

  CoreFixture master_;
  std::vector<Incarnation> sessions_;
};

TEST_F(ThousandsOfWorkers, ComeToTheEndOfTheDataTogether) {
  master_.Register(Shards(kWorkers));
  std::vector<Later<ReportAndLeaseReply>> first;
  for (const Incarnation session : sessions_) first.push_back(Ask(session, 1, {}));
  master_.Commit();

  // Each worker reports its last shard and waits, while the others still hold theirs.
  std::vector<Later<ReportAndLeaseReply>> last;
  for (size_t i = 0; i < sessions_.size(); ++i) {
    last.push_back(Ask(sessions_[i], 2, {{.lease = first[i]->shards.front().lease}}));
    if (i % 100 == 0) master_.Commit();
  }
  master_.Commit();

  for (const Later<ReportAndLeaseReply>& answer : last) {
    ASSERT_TRUE(answer.answered());
    EXPECT_EQ(answer->answer, LeaseAnswer::kFinished);
  }
}

TEST_F(ThousandsOfWorkers, AreShownAndWatchEachOther) {
  master_.Register(Shards(kWorkers));
  for (const Incarnation session : sessions_) Ask(session, 1, {});
  master_.Commit();
  int pushed = 0;
  size_t listed = 0;
  for (const Incarnation session : sessions_) {
    ASSERT_EQ(master_.core().master_api().Watch(session, 1,
                                                [&](const Membership& membership) {
                                                  ++pushed;
                                                  listed += membership.members.size();
                                                  EXPECT_EQ(membership.count > 0, true);
                                                }),
              Ok());
  }
  pushed = 0;

  for (int i = 0; i < 10; ++i) {
    const job::JobView view = master_.core().View();
    EXPECT_EQ(view.replicas.size(), static_cast<size_t>(kWorkers));
    EXPECT_EQ(view.replicas.front().leases, 1);
  }
  // A hundred workers leave at once: each watcher gets one update, a few hundred in each round.
  for (int64_t id = 0; id < 100; ++id) {
    master_.core().OnReplicaEvent(
        {.name = NameOf(Worker(id)), .kind = job::ReplicaEvent::Kind::kExited, .cause = Killed()},
        {});
  }
  master_.Commit();
  EXPECT_LE(pushed, 256);
  for (int i = 0; i < 100; ++i) master_.Tick();
  EXPECT_GE(pushed, kWorkers - 100);
  EXPECT_LE(pushed, kWorkers);
  EXPECT_EQ(listed, 0u);
}

// Each round must be short, however many events occur at once, because all callers wait for its
// end.
TEST_F(ThousandsOfWorkers, AreLostAtOnceOverSeveralTicks) {
  master_.Register(Shards(kWorkers));
  for (const Incarnation session : sessions_) Ask(session, 1, {});
  master_.Commit();
  ASSERT_EQ(master_.Data().leases, kWorkers);

  // No worker sends a heartbeat any more.
  const Dispatcher& dispatcher = master_.core().dispatcher();
  const int64_t most =
      MostInATick([&] { return kWorkers - dispatcher.LeasesOf(*dispatcher.Find(kData)); });

  EXPECT_EQ(master_.Data().leases, 0);
  EXPECT_EQ(most, 256);
}

TEST_F(ThousandsOfWorkers, WhoseCallsAreDueAtOnceAreAnsweredOverSeveralTicks) {
  std::vector<Later<ReportAndLeaseReply>> held;
  master_.Register(Shards(1));
  for (const Incarnation session : sessions_) {
    Later<ReportAndLeaseReply> answer;
    master_.core().master_api().ReportAndLease({.call = master_.NextCall(),
                                                .incarnation = session,
                                                .number = 1,
                                                .dataset = kData,
                                                .lease_at_most = 1,
                                                .wait = std::chrono::seconds(5)},
                                               answer.reply());
    held.push_back(answer);
  }
  master_.Commit();
  const auto answered = [&] {
    return std::count_if(held.begin(), held.end(), [](const auto& a) { return a.answered(); });
  };
  ASSERT_EQ(answered(), 1);  // the call that got the shard

  const int64_t most = MostInATick(answered);

  EXPECT_EQ(answered(), kWorkers);
  EXPECT_EQ(most, 1024);
}

TEST_F(ThousandsOfWorkers, GetTheirAnswersInSlicesAndInOrder) {
  std::vector<size_t> left;
  for (size_t i = 0; i < sessions_.size(); ++i) {
    master_.core().SendAfterCommit([&left, i] { left.push_back(i); });
  }
  ASSERT_EQ(master_.core().Commit(512), Ok());
  EXPECT_EQ(left.size(), 512u);
  EXPECT_EQ(master_.core().unsent_answers(), sessions_.size() - 512);
  master_.core().SendAfterCommit([&left] { left.push_back(kWorkers); });

  master_.Commit();

  ASSERT_EQ(left.size(), sessions_.size() + 1);
  EXPECT_TRUE(std::is_sorted(left.begin(), left.end()));
}

TEST_F(ThousandsOfWorkers, MeetAtABarrier) {
  std::vector<Later<bool>> arrived(sessions_.size());
  for (size_t i = 0; i < sessions_.size(); ++i) {
    master_.core().master_api().Arrive(sessions_[i], "start", std::chrono::hours(1),
                                       arrived[i].reply());
  }
  master_.Commit();

  for (const Later<bool>& answer : arrived) EXPECT_TRUE(answer.answered() && *answer);
}

TEST_F(ThousandsOfWorkers, ReportProgress) {
  for (uint64_t batch = 1; batch <= 5; ++batch) {
    std::vector<Later<bool>> answers(sessions_.size());
    for (size_t i = 0; i < sessions_.size(); ++i) {
      master_.core().master_api().ReportProgress(sessions_[i], batch, 0, std::chrono::hours(1),
                                                 answers[i].reply());
    }
    master_.Commit();
    for (const Later<bool>& answer : answers) ASSERT_TRUE(answer.answered());
  }
}

// CPU time of this thread, which does not depend on other processes.
double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// A job with so many workers, to compare costs.
class Workers : public ThousandsOfWorkers {
 public:
  explicit Workers(int workers) : ThousandsOfWorkers(workers) {}
  void TestBody() override {}

  void Leave() {
    for (size_t id = 0; id < sessions_.size(); ++id) {
      master_.core().OnReplicaEvent({.name = NameOf(Worker(static_cast<int64_t>(id))),
                                     .kind = job::ReplicaEvent::Kind::kExited,
                                     .cause = Killed()},
                                    {});
    }
    master_.Commit();
  }
  // One worker trains the last shard, and the others wait for the end.
  void WaitForTheEnd() {
    master_.Register(Shards(1));
    for (const Incarnation session : sessions_) Ask(session, 1, {});
    master_.Commit();
  }
  void Lease() {
    master_.Register(Shards(static_cast<int64_t>(sessions_.size())));
    for (const Incarnation session : sessions_) Ask(session, 1, {});
    master_.Commit();
  }
  void Look() {
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(master_.core().View().replicas.empty());
  }
  void Watch() {
    for (const Incarnation session : sessions_) {
      EXPECT_OK(master_.core().master_api().Watch(session, 1, [](const Membership&) {}));
    }
  }
  void MeetAtABarrier() {
    for (const Incarnation session : sessions_) {
      master_.core().master_api().Arrive(session, "start", std::chrono::hours(1),
                                         Later<bool>().reply());
    }
    master_.Commit();
  }
  void ReportProgress() {
    for (const Incarnation session : sessions_) {
      master_.core().master_api().ReportProgress(session, 1, 0, std::chrono::hours(1),
                                                 Later<bool>().reply());
    }
    master_.Commit();
  }
  void Rest() {
    for (int i = 0; i < 5'000; ++i) master_.core().Tick();
  }
};

constexpr int kFew = 300;
constexpr int kTimesAsMany = 8;

// The CPU time of `measured`, after `before` has run.
double CostOf(int workers, const std::function<void(Workers&)>& before,
              const std::function<void(Workers&)>& measured) {
  Workers all(workers);
  before(all);
  const double began = CpuSeconds();
  measured(all);
  return CpuSeconds() - began;
}

// Expects that eight times as many workers cost at most `times` as much. Linear work costs 8 to 10
// times as much in each attempt, quadratic work 45 to 65 times.
void ExpectGrowth(double times, const std::function<double(int workers)>& cost) {
  double growth = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    growth = cost(kFew * kTimesAsMany) / cost(kFew);
    if (growth < times) return;
  }
  ADD_FAILURE() << kTimesAsMany << " times as many workers cost " << growth << " times as much";
}

constexpr double kLinear = 16;
constexpr double kConstant = 3;

TEST(CostOfWorkers, IsLinearWhenTheyStart) {
  ExpectGrowth(kLinear, [](int workers) {
    const double began = CpuSeconds();
    const Workers all(workers);
    return CpuSeconds() - began;
  });
}

TEST(CostOfWorkers, IsLinearWhenTheyLeave) {
  ExpectGrowth(kLinear,
               [](int workers) { return CostOf(workers, &Workers::Lease, &Workers::Leave); });
}

TEST(CostOfWorkers, IsLinearWhenTheyWaitForTheEnd) {
  ExpectGrowth(kLinear, [](int workers) {
    return CostOf(
        workers, [](Workers&) {}, &Workers::WaitForTheEnd);
  });
}

TEST(CostOfWorkers, IsLinearWhenTheyAreShown) {
  ExpectGrowth(kLinear,
               [](int workers) { return CostOf(workers, &Workers::Lease, &Workers::Look); });
}

TEST(CostOfWorkers, IsLinearWhenTheyWatchEachOther) {
  ExpectGrowth(kLinear, [](int workers) {
    return CostOf(
        workers, [](Workers&) {}, &Workers::Watch);
  });
}

TEST(CostOfWorkers, IsLinearWhenTheyMeetAtABarrier) {
  ExpectGrowth(kLinear, [](int workers) {
    return CostOf(
        workers, [](Workers&) {}, &Workers::MeetAtABarrier);
  });
}

TEST(CostOfWorkers, IsLinearWhenTheyReportProgress) {
  ExpectGrowth(kLinear, [](int workers) {
    return CostOf(
        workers, [](Workers&) {}, &Workers::ReportProgress);
  });
}

// The loop ticks every 50 ms.
TEST(CostOfWorkers, IsConstantWhenNothingHappens) {
  ExpectGrowth(kConstant,
               [](int workers) { return CostOf(workers, &Workers::Lease, &Workers::Rest); });
}

}  // namespace
}  // namespace edl::master
