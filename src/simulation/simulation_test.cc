#include "simulation/simulation.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "base/log.h"

namespace edl::master {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// EDL_SIM_SCHEDULES: how many; EDL_SIM_FIRST: the first seed. A failure names its seed, and
// EDL_SIM_FIRST=<seed> EDL_SIM_SCHEDULES=1 replays it, with the master's log.
TEST(Simulation, CompletesEveryRecordOnceUnderRandomSchedules) {
  const uint64_t schedules = FromEnvironment("EDL_SIM_SCHEDULES", 1000);
  const uint64_t first = FromEnvironment("EDL_SIM_FIRST", 1);
  SetLogLevel(schedules > 1 ? LogLevel::kCritical : LogLevel::kDebug);
  SimulationResult sum;
  for (uint64_t seed = first; seed < first + schedules; ++seed) {
    const SimulationResult result = Simulate(seed);
    ASSERT_TRUE(result.ok) << result.failure;
    sum.kills += result.kills;
    sum.kills_with_lease += result.kills_with_lease;
    sum.master_crashes += result.master_crashes;
    sum.freezes += result.freezes;
    sum.lost_messages += result.lost_messages;
    sum.virtual_seconds += result.virtual_seconds;
    sum.server_kills += result.server_kills;
    sum.moves += result.moves;
    sum.restores += result.restores;
    sum.saves += result.saves;
    sum.voids += result.voids;
    sum.failed_saves += result.failed_saves;
    sum.fallbacks += result.fallbacks;
    sum.orphans += result.orphans;
    sum.zombies += result.zombies;
    sum.vanished += result.vanished;
    sum.hangs += result.hangs;
    sum.fenced += result.fenced;
    sum.dropped_links += result.dropped_links;
    sum.cancelled += result.cancelled;
    sum.stood_still += result.stood_still;
    sum.blind += result.blind;
    sum.reopened += result.reopened;
    sum.told_to_reopen += result.told_to_reopen;
    sum.partly_applied += result.partly_applied;
    sum.stale += result.stale;
    sum.resets += result.resets;
  }
  std::printf(
      "seeds %llu..%llu: %d kills (%d hit a lease), %d master crashes, %d freezes, %d messages "
      "lost, %.0f virtual hours\n",
      static_cast<unsigned long long>(first),
      static_cast<unsigned long long>(first + schedules - 1), sum.kills, sum.kills_with_lease,
      sum.master_crashes, sum.freezes, sum.lost_messages, sum.virtual_seconds / 3600);
  std::printf(
      "parameter servers: %d kills, %d moves, %d restores (%d fell back), %d saves (%d void, %d "
      "failed), %d shards reopened, %d reports answered so, %d batches partly applied, "
      "%d stale, %d resets\n",
      sum.server_kills, sum.moves, sum.restores, sum.fallbacks, sum.saves, sum.voids,
      sum.failed_saves, sum.reopened, sum.told_to_reopen, sum.partly_applied, sum.stale,
      sum.resets);
  std::printf(
      "%d servers vanished, %d hung for ever, %d were zombies to the end, %d restores without "
      "their volume; %d saves cancelled, %d stood still, %d folders collected; workers dropped %d "
      "connections of "
      "an "
      "older epoch, and fenced servers closed %d\n",
      sum.vanished, sum.hangs, sum.zombies, sum.blind, sum.cancelled, sum.stood_still, sum.orphans,
      sum.dropped_links, sum.fenced);
  if (schedules >= 1000) {
    EXPECT_GT(sum.kills_with_lease, 100);
    EXPECT_GT(sum.master_crashes, 100);
    EXPECT_GT(sum.freezes, 100);
    EXPECT_GT(sum.lost_messages, 100);
    EXPECT_GT(sum.server_kills, 100);
    EXPECT_GT(sum.moves, 100);
    EXPECT_GT(sum.restores, 100);
    EXPECT_GT(sum.saves, 100);
    EXPECT_GT(sum.voids + sum.cancelled, 50);
    EXPECT_GT(sum.failed_saves, 10);
    EXPECT_GT(sum.fallbacks, 10);
    EXPECT_GT(sum.reopened, 100);
    EXPECT_GT(sum.told_to_reopen, 100);
    EXPECT_GT(sum.partly_applied, 20);
    EXPECT_GT(sum.stale, 100);
    EXPECT_GT(sum.resets, 10);
    EXPECT_GT(sum.orphans, 5);
    EXPECT_GT(sum.zombies, 50);
    EXPECT_GT(sum.vanished, 50);
    EXPECT_GT(sum.hangs, 20);
    EXPECT_GT(sum.fenced, 20);
    EXPECT_GT(sum.dropped_links, 100);
    EXPECT_GT(sum.cancelled, 10);
    EXPECT_GT(sum.blind, 50);
  }
}

// The checks can fail: each mutant is found within some hundred schedules.
class SimulationOfAMutant : public testing::TestWithParam<Mutant> {};

TEST_P(SimulationOfAMutant, IsFound) {
  SetLogLevel(LogLevel::kCritical);
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    const SimulationResult result = SimulateMutant(seed, GetParam());
    if (!result.ok) {
      std::printf("found: %s\n", result.failure.c_str());
      return;
    }
  }
  FAIL() << "500 schedules, and nobody noticed";
}

INSTANTIATE_TEST_SUITE_P(All, SimulationOfAMutant,
                         testing::Values(Mutant::kNoDeduplication, Mutant::kNoReclaim,
                                         Mutant::kNoWatermarks, Mutant::kNamesAnyEpoch,
                                         Mutant::kDropsUnfenced, Mutant::kCutsEarly,
                                         Mutant::kRestoresNoMarks, Mutant::kKeepsOldLinks,
                                         Mutant::kNoSilenceLimit, Mutant::kMissingIsDamage));

}  // namespace
}  // namespace edl::master
