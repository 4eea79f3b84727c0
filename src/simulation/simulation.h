#pragma once

#include <cstdint>
#include <string>

namespace edl::master {

// The result of a simulated schedule.
struct SimulationResult {
  bool ok = false;
  std::string failure;  // which invariant was violated, when, in which schedule
  int kills = 0;
  int kills_with_lease = 0;  // of workers that held a lease
  int master_crashes = 0;
  int freezes = 0;
  int lost_messages = 0;
  // Counts of parameter servers.
  int server_kills = 0;
  int moves = 0;           // of all buckets to other lanes
  int restores = 0;        // of new servers
  int saves = 0;           // committed
  int voids = 0;           // saved after their epoch had ended
  int failed_saves = 0;    // for another reason
  int fallbacks = 0;       // to the previous checkpoint
  int orphans = 0;         // folders of unfinished saves that were removed
  int zombies = 0;         // reported dead, and answered until the end of the job
  int vanished = 0;        // with their machine
  int hangs = 0;           // frozen for ever
  int fenced = 0;          // connections that a fenced server closed
  int dropped_links = 0;   // connections to servers of an older epoch, dropped by workers
  int cancelled = 0;       // saves
  int stood_still = 0;     // saves that failed because they made no progress
  int blind = 0;           // restores by a server without the checkpoints' volume
  int reopened = 0;        // leases of shards that had been done
  int told_to_reopen = 0;  // reports of shards
  int partly_applied = 0;  // batches, to some buckets of a lane
  int stale = 0;           // batches that a lane refused as too old
  int resets = 0;
  double virtual_seconds = 0;
};

// Runs one job in virtual time: the real core over a real ledger in memory, simulated workers of
// both APIs, and a schedule of kills, freezes, master crashes and stalls, and lost, late and
// repeated messages, which is a function of `seed` alone. Checks invariants after every step. At
// the end every record of every epoch must be completed once, and the job must have succeeded. Half
// of the schedules have parameter servers, which count batches. No batch may ever be applied to a
// bucket twice, and the last checkpoint must have every batch in every bucket once.
SimulationResult Simulate(uint64_t seed);

// Mistakes that the checks above must find.
enum class Mutant {
  kNone,
  kNoDeduplication,  // a repeated call is handled as a new one
  kNoReclaim,        // the leases of a dead worker are not reclaimed
  // Parameter servers and their clients:
  kNoWatermarks,     // a repeated batch is applied again
  kNamesAnyEpoch,    // a report names the newest epoch instead of the one that Open returned
  kDropsUnfenced,    // watermarks are dropped, and leases below the floor are still accepted
  kCutsEarly,        // a lane saves its state from before the save began
  kRestoresNoMarks,  // a restored lane has no watermarks
  kKeepsOldLinks,    // a worker keeps its connection to a server of an older epoch
  kNoSilenceLimit,   // a server that does not answer is never replaced
  kMissingIsDamage,  // a file that only a server does not see counts as damaged
};
SimulationResult SimulateMutant(uint64_t seed, Mutant mutant);

}  // namespace edl::master
