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
  double virtual_seconds = 0;
};

// Runs one job under virtual time: the real core over a real (in-memory) ledger, simulated workers
// at both doors, and a schedule of kills, freezes, master crashes and stalls, lost, late and
// repeated messages that is a function of `seed` alone. Invariants are checked after every step;
// at the end every record of every epoch must be completed once and the job must have succeeded.
SimulationResult Simulate(uint64_t seed);

// What a broken master would do, to show that the checks above would see it.
enum class Mutant {
  kNone,
  kNoDeduplication,  // a call that comes again is taken for a new one
  kNoReclaim,        // the leases of a dead worker stay its own
};
SimulationResult SimulateMutant(uint64_t seed, Mutant mutant);

}  // namespace edl::master
