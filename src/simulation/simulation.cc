#include "simulation/simulation.h"

#include "simulation/simulated_job.h"

namespace edl::master {

SimulationResult Simulate(uint64_t seed) { return SimulatedJob(seed, Mutant::kNone).Run(); }

SimulationResult SimulateMutant(uint64_t seed, Mutant mutant) {
  return SimulatedJob(seed, mutant).Run();
}

}  // namespace edl::master
