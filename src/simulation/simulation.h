#pragma once

#include <cstdint>
#include <string>

namespace edl::master {

// How a simulated schedule went.
struct SimulationResult {
  bool ok = false;
  std::string failure;  // which invariant broke, when, in which schedule
  int kills = 0;
  int kills_with_lease = 0;  // that hit an open lease
  int master_crashes = 0;
  int freezes = 0;
  int lost_messages = 0;
  // Counts of parameter servers.
  int server_kills = 0;
  int moves = 0;           // of all buckets to other lanes
  int restores = 0;        // of servers that came anew
  int saves = 0;           // committed
  int voids = 0;           // saved, and of no use any more
  int failed_saves = 0;    // for another reason
  int fallbacks = 0;       // to the checkpoint before
  int orphans = 0;         // what was left of saves, removed
  int zombies = 0;         // given up, and answer until the end of the job
  int vanished = 0;        // without a word to anybody
  int hangs = 0;           // for ever
  int fenced = 0;          // connections that a fenced server closed
  int dropped_links = 0;   // connections to servers of an older epoch, dropped by workers
  int cancelled = 0;       // saves
  int stood_still = 0;     // saves that failed because they made no progress
  int blind = 0;           // restores by a server that did not see the checkpoint
  int reopened = 0;        // leases of shards that had been done
  int told_to_reopen = 0;  // reports of shards
  int partly_applied = 0;  // batches, to some buckets of a lane
  int stale = 0;           // batches that a lane wanted computed again
  int resets = 0;
  double virtual_seconds = 0;
};

// Runs one job under virtual time: the real core over a real (in-memory) ledger, simulated workers
// of both APIs, and a schedule of kills, freezes, master crashes and stalls, lost, late and
// repeated messages that is a function of `seed` alone. Invariants are checked after every step;
// at the end every record of every epoch must be completed once and the job must have succeeded.
// In half of the schedules there are parameter servers too, which count: at no time may a batch
// have reached a bucket twice, and the last checkpoint must have every batch in every bucket once.
SimulationResult Simulate(uint64_t seed);

// What a broken master would do, to show that the checks above would see it.
enum class Mutant {
  kNone,
  kNoDeduplication,  // a call that comes again is taken for a new one
  kNoReclaim,        // the leases of a dead worker stay its own
  // Parameter servers and their clients:
  kNoWatermarks,     // a batch that comes again is applied again
  kNamesAnyEpoch,    // a report claims the newest epoch, whatever Open said
  kDropsUnfenced,    // marks are dropped, and leases below the floor are still good
  kCutsEarly,        // a lane saves what it had before the save began
  kRestoresNoMarks,  // a restored lane does not know what it has
  kKeepsOldLinks,    // a worker goes on with a server of an older epoch than the master's
  kNoSilenceLimit,   // a server that does not answer is waited for
  kMissingIsDamage,  // what a server does not see is taken for damaged
};
SimulationResult SimulateMutant(uint64_t seed, Mutant mutant);

}  // namespace edl::master
