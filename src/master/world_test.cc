#include "master/world.h"

#include <vector>

#include <gtest/gtest.h>

#include "master/testing/core_fixture.h"

namespace edl::master {
namespace {

using Process = World::Process;
using Rank = World::Rank;

const Process kA{"host-a", 0};
const Process kB{"host-b", 0};
const Process kC{"host-c", 0};

class WorldTest : public ::testing::Test {
 protected:
  // All ask for their rank often enough for a pending change to be installed.
  void AllAsk(const std::vector<Process>& processes) {
    for (int times = 0; times < 2; ++times) {
      for (const Process& process : processes) world_.RankOf(process);
    }
  }

  Ledger ledger_ = *Ledger::Open(":memory:");
  World world_{ledger_};
};

TEST_F(WorldTest, KnowsNobodyWhoDidNotStart) { EXPECT_EQ(world_.RankOf(kA).rank, -1); }

TEST_F(WorldTest, NumbersMembersInTheOrderOfTheirStart) {
  world_.Start(kA, 1000);
  world_.Start(kB, 2000);
  AllAsk({kA, kB});

  const Rank first = world_.RankOf(kA);
  const Rank second = world_.RankOf(kB);

  EXPECT_EQ(first.rank, 0);
  EXPECT_EQ(second.rank, 1);
  EXPECT_EQ(second.size, 2);
  EXPECT_EQ(second.address, "host-a");
  EXPECT_EQ(second.port, 1000);
  EXPECT_GE(second.number, 1);
}

TEST_F(WorldTest, PutsSurvivorsBeforeNewcomers) {
  world_.Start(kA, 1000);
  world_.Start(kB, 2000);
  AllAsk({kA, kB});
  const int32_t before = world_.RankOf(kB).number;

  world_.HostGone(kA.host);
  world_.Start(kC, 3000);
  AllAsk({kB, kC});

  EXPECT_EQ(world_.RankOf(kB).rank, 0);
  EXPECT_EQ(world_.RankOf(kC).rank, 1);
  EXPECT_EQ(world_.RankOf(kC).address, "host-b");
  EXPECT_EQ(world_.RankOf(kA).rank, -1);
  EXPECT_GT(world_.RankOf(kB).number, before);
}

TEST_F(WorldTest, WaitsForAllMembersToAskBeforeItChanges) {
  world_.Start(kA, 1000);
  world_.Start(kB, 2000);
  world_.RankOf(kA);
  ASSERT_EQ(world_.RankOf(kA).size, 2);

  world_.Start(kC, 3000);
  EXPECT_EQ(world_.RankOf(kC).rank, -1) << "b has not asked yet";
  world_.RankOf(kB);

  EXPECT_EQ(world_.RankOf(kC).rank, 2);
}

TEST_F(WorldTest, TakesARestartedProcessForANewcomer) {
  world_.Start(kA, 1000);
  world_.Start(kB, 2000);
  AllAsk({kA, kB});

  world_.Start(kA, 1001);
  AllAsk({kA, kB});

  EXPECT_EQ(world_.RankOf(kB).rank, 0);
  EXPECT_EQ(world_.RankOf(kA).rank, 1);
}

TEST_F(WorldTest, LeavesOutWhoEnded) {
  world_.Start(kA, 1000);
  world_.Start(kB, 2000);
  AllAsk({kA, kB});

  world_.End(kA);
  AllAsk({kA, kB});

  EXPECT_EQ(world_.RankOf(kA).rank, -1);
  EXPECT_EQ(world_.RankOf(kB).size, 1);
}

TEST_F(WorldTest, KnowsTheProcessesOfOneHost) {
  const Process first{"host-a", 0};
  const Process second{"host-a", 1};
  const Process elsewhere{"host-b", 0};
  world_.Start(first, 1000);
  world_.Start(second, 1001);
  world_.Start(elsewhere, 2000);
  AllAsk({first, second, elsewhere});

  const Rank rank = world_.RankOf(second);
  const Rank other = world_.RankOf(elsewhere);

  EXPECT_EQ(rank.local_rank, 1);
  EXPECT_EQ(rank.local_size, 2);
  EXPECT_EQ(rank.cross_rank, 0);
  EXPECT_EQ(rank.cross_size, 2);
  EXPECT_EQ(other.local_rank, 0);
  EXPECT_EQ(other.cross_rank, 1);
}

TEST_F(WorldTest, NeverStartsItsNumbersAgain) {
  world_.Start(kA, 1000);
  AllAsk({kA});
  world_.Start(kB, 2000);
  AllAsk({kA, kB});
  const Rank before = world_.RankOf(kB);
  world_.Flush();
  ASSERT_EQ(ledger_.Commit(), Ok());

  World loaded(ledger_);
  ASSERT_EQ(loaded.Load((*ledger_.Meta())["world"]), Ok());
  const Rank after = loaded.RankOf(kB);
  loaded.Start(kC, 3000);
  for (int times = 0; times < 2; ++times) {
    for (const Process& process : {kA, kB, kC}) loaded.RankOf(process);
  }

  EXPECT_EQ(after.rank, before.rank);
  EXPECT_EQ(after.number, before.number);
  EXPECT_GT(loaded.RankOf(kC).number, before.number);
}

TEST_F(WorldTest, SynchronizesTheMembersOfTheCurrentNumberOnly) {
  world_.Start(kA, 1000);
  world_.Start(kB, 2000);
  AllAsk({kA, kB});
  const int32_t number = world_.RankOf(kA).number;

  EXPECT_FALSE(world_.ResetSync(kA, number));
  EXPECT_FALSE(world_.BarrierSync(kA, number)) << "a reset is not a barrier";
  EXPECT_TRUE(world_.ResetSync(kB, number));
  EXPECT_TRUE(world_.ResetSync(kA, number));
  EXPECT_TRUE(world_.BarrierSync(kB, number));
  EXPECT_TRUE(world_.BarrierSync(kA, number - 1)) << "an old number is to ask for its rank again";
}

TEST_F(WorldTest, RefusesADamagedRecord) {
  for (const char* damaged : {"{", "[]", R"({"number": 1})", R"({"number": 1, "members": [1]})"}) {
    World loaded(ledger_);
    EXPECT_EQ(loaded.Load(damaged).code(), Code::kDataLoss) << damaged;
  }
}

}  // namespace
}  // namespace edl::master
