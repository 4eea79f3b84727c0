#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "simulation/simulated_lane.h"
#include "simulation/simulation.h"
#include "simulation/simulation_plan.h"
#include "simulation/virtual_time.h"

#include "base/status.h"
#include "checkpoint/manifest.h"
#include "master/core.h"

namespace edl::master {

// The volume of a simulated job's checkpoints, and the checks of what the checkpoints contain.
// Confined.
class SimulatedStorage {
 public:
  // The folder of the job's checkpoints.
  static constexpr const char* kRoot = "/checkpoints";

  // All outlive it.
  SimulatedStorage(const Plan& plan, const SimulatedBatches& batches, VirtualTime& time,
                   SimulationResult& sums)
      : plan_(plan), batches_(batches), time_(time), sums_(sums) {}

  // As checkpoint::MakeCheckpointFolder, WriteManifest and ReadManifest.
  Status MakeFolder(const std::filesystem::path& folder);
  Status WriteManifest(const std::filesystem::path& folder, const checkpoint::Manifest& manifest);
  Result<checkpoint::Manifest> ReadManifest(const std::filesystem::path& folder) const;
  void Remove(const DropCheckpoint& drop) { folders_.erase(drop.name); }
  void Remove(const CollectOrphans& collect);

  // A lane writes its part. NotFound: the folder was removed.
  Status WritePart(const std::filesystem::path& path, SimulatedPart part);
  struct ReadPart {
    SimulatedPart part;
    bool damaged = false;
  };
  Result<ReadPart> Read(const std::filesystem::path& path) const;

  // Checks after each commit that the newest checkpoint has each shard that it claims to cover, and
  // has it once.
  void CheckNewest(Core& core);
  // Checks at the end that a checkpoint has everything.
  void CheckAll(Core& core);

 private:
  struct Folder {
    std::map<std::string, SimulatedPart> parts;  // by file name
    std::optional<checkpoint::Manifest> manifest;
    bool damaged = false;
  };

  void OnNewCheckpoint(const std::string& name);
  // Checks that a checkpoint has each batch of the shards that `expected` names once in each
  // bucket.
  void Check(Core& core, const std::string& name,
             const std::function<bool(int64_t, uint64_t)>& expected);
  bool HasOnce(const Folder& folder, size_t batch) const;

  const Plan& plan_;
  const SimulatedBatches& batches_;
  VirtualTime& time_;
  SimulationResult& sums_;
  std::map<std::string, Folder> folders_;  // by the name of the checkpoint
  int good_since_damage_ = 0;
  std::string durable_;              // the last checkpoint that had everything
  std::string newest_;               // the last one that was checked
  std::set<std::string> committed_;  // all that the ledger ever named
};

}  // namespace edl::master
