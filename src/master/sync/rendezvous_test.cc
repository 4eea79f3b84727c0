#include "master/sync/rendezvous.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

using Process = Rendezvous::Process;
using Rank = Rendezvous::Rank;

const Process kA{"host-a", 0};
const Process kB{"host-b", 0};
const Process kC{"host-c", 0};

class RendezvousTest : public ::testing::Test {
 protected:
  // All processes request their ranks, often enough for a pending change to take effect.
  void AllAsk(const std::vector<Process>& processes) {
    for (int times = 0; times < 2; ++times) {
      for (const Process& process : processes) rendezvous_.RankOf(process);
    }
  }

  Ledger ledger_ = *Ledger::Open(":memory:");
  Rendezvous rendezvous_{ledger_};
};

TEST_F(RendezvousTest, IgnoresProcessesThatDidNotStart) {
  EXPECT_EQ(rendezvous_.RankOf(kA).rank, -1);
}

TEST_F(RendezvousTest, NumbersMembersInTheOrderOfTheirStart) {
  rendezvous_.Start(kA, 1000);
  rendezvous_.Start(kB, 2000);
  AllAsk({kA, kB});

  const Rank first = rendezvous_.RankOf(kA);
  const Rank second = rendezvous_.RankOf(kB);

  EXPECT_EQ(first.rank, 0);
  EXPECT_EQ(second.rank, 1);
  EXPECT_EQ(second.size, 2);
  EXPECT_EQ(second.address, "host-a");
  EXPECT_EQ(second.port, 1000);
  EXPECT_GE(second.number, 1);
}

TEST_F(RendezvousTest, RanksRemainingMembersBeforeNewOnes) {
  rendezvous_.Start(kA, 1000);
  rendezvous_.Start(kB, 2000);
  AllAsk({kA, kB});
  const int32_t before = rendezvous_.RankOf(kB).number;

  rendezvous_.HostGone(kA.host);
  rendezvous_.Start(kC, 3000);
  AllAsk({kB, kC});

  EXPECT_EQ(rendezvous_.RankOf(kB).rank, 0);
  EXPECT_EQ(rendezvous_.RankOf(kC).rank, 1);
  EXPECT_EQ(rendezvous_.RankOf(kC).address, "host-b");
  EXPECT_EQ(rendezvous_.RankOf(kA).rank, -1);
  EXPECT_GT(rendezvous_.RankOf(kB).number, before);
}

TEST_F(RendezvousTest, WaitsForAllMembersToAskBeforeItChanges) {
  rendezvous_.Start(kA, 1000);
  rendezvous_.Start(kB, 2000);
  rendezvous_.RankOf(kA);
  ASSERT_EQ(rendezvous_.RankOf(kA).size, 2);

  rendezvous_.Start(kC, 3000);
  EXPECT_EQ(rendezvous_.RankOf(kC).rank, -1) << "b has not asked yet";
  rendezvous_.RankOf(kB);

  EXPECT_EQ(rendezvous_.RankOf(kC).rank, 2);
}

TEST_F(RendezvousTest, RanksARestartedProcessAsANewMember) {
  rendezvous_.Start(kA, 1000);
  rendezvous_.Start(kB, 2000);
  AllAsk({kA, kB});

  rendezvous_.Start(kA, 1001);
  AllAsk({kA, kB});

  EXPECT_EQ(rendezvous_.RankOf(kB).rank, 0);
  EXPECT_EQ(rendezvous_.RankOf(kA).rank, 1);
}

TEST_F(RendezvousTest, ExcludesProcessesThatHaveExited) {
  rendezvous_.Start(kA, 1000);
  rendezvous_.Start(kB, 2000);
  AllAsk({kA, kB});

  rendezvous_.End(kA);
  AllAsk({kA, kB});

  EXPECT_EQ(rendezvous_.RankOf(kA).rank, -1);
  EXPECT_EQ(rendezvous_.RankOf(kB).size, 1);
}

TEST_F(RendezvousTest, KnowsTheProcessesOfOneHost) {
  const Process first{"host-a", 0};
  const Process second{"host-a", 1};
  const Process elsewhere{"host-b", 0};
  rendezvous_.Start(first, 1000);
  rendezvous_.Start(second, 1001);
  rendezvous_.Start(elsewhere, 2000);
  AllAsk({first, second, elsewhere});

  const Rank rank = rendezvous_.RankOf(second);
  const Rank other = rendezvous_.RankOf(elsewhere);

  EXPECT_EQ(rank.local_rank, 1);
  EXPECT_EQ(rank.local_size, 2);
  EXPECT_EQ(rank.cross_rank, 0);
  EXPECT_EQ(rank.cross_size, 2);
  EXPECT_EQ(other.local_rank, 0);
  EXPECT_EQ(other.cross_rank, 1);
}

TEST_F(RendezvousTest, NeverStartsItsNumbersAgain) {
  rendezvous_.Start(kA, 1000);
  AllAsk({kA});
  rendezvous_.Start(kB, 2000);
  AllAsk({kA, kB});
  const Rank before = rendezvous_.RankOf(kB);
  rendezvous_.Flush();
  ASSERT_EQ(ledger_.Commit(), Ok());

  Rendezvous loaded(ledger_);
  ASSERT_EQ(loaded.Load((*ledger_.Meta())["rendezvous"]), Ok());
  const Rank after = loaded.RankOf(kB);
  loaded.Start(kC, 3000);
  for (int times = 0; times < 2; ++times) {
    for (const Process& process : {kA, kB, kC}) loaded.RankOf(process);
  }

  EXPECT_EQ(after.rank, before.rank);
  EXPECT_EQ(after.number, before.number);
  EXPECT_GT(loaded.RankOf(kC).number, before.number);
}

TEST_F(RendezvousTest, SynchronizesTheMembersOfTheCurrentNumberOnly) {
  rendezvous_.Start(kA, 1000);
  rendezvous_.Start(kB, 2000);
  AllAsk({kA, kB});
  const int32_t number = rendezvous_.RankOf(kA).number;

  EXPECT_FALSE(rendezvous_.ResetSync(kA, number));
  EXPECT_FALSE(rendezvous_.BarrierSync(kA, number)) << "a reset is not a barrier";
  EXPECT_TRUE(rendezvous_.ResetSync(kB, number));
  EXPECT_TRUE(rendezvous_.ResetSync(kA, number));
  EXPECT_TRUE(rendezvous_.BarrierSync(kB, number));
  EXPECT_TRUE(rendezvous_.BarrierSync(kA, number - 1))
      << "an old number is to ask for its rank again";
}

TEST_F(RendezvousTest, RefusesADamagedRecord) {
  for (const char* damaged : {"{", "[]", R"({"number": 1})", R"({"number": 1, "members": [1]})"}) {
    Rendezvous loaded(ledger_);
    EXPECT_THAT(loaded.Load(damaged), StatusIs(Code::kDataLoss)) << damaged;
  }
}

}  // namespace
}  // namespace edl::master
