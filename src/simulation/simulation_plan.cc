#include "simulation/simulation_plan.h"

namespace edl::master {
namespace {

// Adds parameter servers to half of the schedules. Uses random numbers of its own, so that the
// other schedules do not change.
void AddServers(std::mt19937_64 random, Plan& plan) {
  random.seed(random() ^ 0x9E3779B97F4A7C15);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  const auto real = [&](double most) {
    return pick(0, 1) == 0 ? 0.0 : std::uniform_real_distribution<double>(0, most)(random);
  };
  plan.own_servers = pick(0, 1) == 1;
  if (!plan.own_servers) return;
  plan.chief = false;
  plan.compat_api_mixed = false;
  plan.data.batches_per_shard = pick(1, 6);
  plan.servers = pick(1, 3);
  plan.lanes = pick(1, 3);
  plan.recovery_secs = pick(0, 1) == 0 ? pick(1, 3) : pick(1, 10);
  plan.checkpoint_steps = pick(0, 2) == 0 ? pick(1, 20) : 0;
  plan.keep_checkpoints = pick(0, 3);
  plan.depth = pick(1, 4);
  plan.move_rate = real(0.05);
  plan.damage = real(0.5);
  plan.reset_rate = pick(0, 3) == 0 ? 0.03 : 0.0;
  plan.zombie = real(0.6);
  plan.vanish = real(0.4);
  plan.blind = real(0.3);
  plan.slow_disk = real(0.1);
  plan.fences = pick(0, 1) == 1;
  plan.spares_workers = pick(0, 2) == 0;
  if (plan.spares_workers) plan.loss = 0;
  if (pick(0, 1) == 0) plan.no_progress = std::chrono::seconds(pick(10, 60));
}

}  // namespace

Plan MakePlan(std::mt19937_64& random) {
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  const auto real = [&](double most) {
    return pick(0, 2) == 0 ? 0.0 : std::uniform_real_distribution<double>(0, most)(random);
  };
  Plan plan;
  plan.workers = pick(1, 3);
  plan.chief = pick(0, 1) == 1;
  plan.data = {.name = Plan::kDataset,
               .size = pick(20, 120),
               .batch_size = pick(2, 7),
               .batches_per_shard = pick(1, 3),
               .epochs = pick(1, 2),
               .order = static_cast<Order>(pick(0, 2))};
  plan.kill_rate = real(0.08);
  plan.freeze_rate = real(0.05);
  plan.crash_rate = real(0.1);
  plan.stall_rate = real(0.03);
  plan.loss = real(0.2);
  plan.repeat = real(0.2);
  plan.compat_api_mixed = pick(0, 1) == 1;
  plan.quits_on_error = pick(0, 3) == 0;
  AddServers(random, plan);
  return plan;
}

}  // namespace edl::master
