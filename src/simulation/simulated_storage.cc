#include "simulation/simulated_storage.h"

#include <algorithm>
#include <utility>

#include "checkpoint/checkpoint_folder.h"

namespace edl::master {

namespace fs = std::filesystem;

Status SimulatedStorage::MakeFolder(const fs::path& folder) {
  if (folders_.try_emplace(folder.filename()).second) return Ok();
  return AlreadyExists("{} exists", folder.string());
}

Status SimulatedStorage::WriteManifest(const fs::path& folder,
                                       const checkpoint::Manifest& manifest) {
  const auto found = folders_.find(folder.filename());
  if (found == folders_.end()) return NotFound("{} was removed", folder.string());
  found->second.manifest = manifest;
  return Ok();
}

Result<checkpoint::Manifest> SimulatedStorage::ReadManifest(const fs::path& folder) const {
  const auto found = folders_.find(folder.filename());
  if (found == folders_.end() || !found->second.manifest.has_value()) {
    return NotFound("{} holds no checkpoint", folder.string());
  }
  for (const checkpoint::Manifest::Part& part : found->second.manifest->parts) {
    if (!found->second.parts.contains(part.file)) return DataLoss("{} is missing", part.file);
  }
  return *found->second.manifest;
}

void SimulatedStorage::Remove(const CollectOrphans& collect) {
  std::erase_if(folders_, [&](const auto& entry) {
    const auto name = checkpoint::CheckpointName::FromText(entry.first);
    const bool is_orphan = name && name->ledger == collect.ledger && name->save < collect.below &&
                           std::ranges::find(collect.keep, entry.first) == collect.keep.end();
    if (is_orphan) ++sums_.orphans;
    return is_orphan;
  });
}

Status SimulatedStorage::WritePart(const fs::path& path, SimulatedPart part) {
  const auto found = folders_.find(path.parent_path().filename());
  if (found == folders_.end()) return NotFound("the folder of {} was removed", path.string());
  if (found->second.parts.try_emplace(path.filename(), std::move(part)).second) return Ok();
  return AlreadyExists("{} exists", path.string());
}

Result<SimulatedStorage::ReadPart> SimulatedStorage::Read(const fs::path& path) const {
  const auto found = folders_.find(path.parent_path().filename());
  if (found == folders_.end()) return NotFound("{} is missing", path.string());
  const auto part = found->second.parts.find(path.filename());
  if (part == found->second.parts.end()) return NotFound("{} is missing", path.string());
  return ReadPart{.part = part->second, .damaged = found->second.damaged};
}

bool SimulatedStorage::HasOnce(const Folder& folder, size_t batch) const {
  if (!folder.manifest.has_value()) return false;
  size_t buckets = 0;
  for (const checkpoint::Manifest::Part& named : folder.manifest->parts) {
    const auto part = folder.parts.find(named.file);
    if (part == folder.parts.end()) return false;
    for (const SimulatedBucket& bucket : part->second.buckets) {
      if (batch < bucket.size() && bucket[batch] == 1) ++buckets;
    }
  }
  return buckets == SimulatedLane::kBuckets;
}

void SimulatedStorage::Check(Core& core, const std::string& name,
                             const std::function<bool(int64_t, uint64_t)>& expected) {
  const Dataset* dataset = core.dispatcher().Find(Plan::kDataset);
  if (dataset == nullptr) return;
  const uint32_t generation = dataset->row().generation;
  for (int64_t epoch = 0; epoch < plan_.data.epochs; ++epoch) {
    for (uint64_t ordinal = 0; ordinal < batches_.shards; ++ordinal) {
      if (!expected(epoch, ordinal)) continue;
      const int64_t records = dataset->records_in(ordinal);
      for (uint64_t batch = 0; static_cast<int64_t>(batch) * plan_.data.batch_size < records;
           ++batch) {
        if (HasOnce(folders_[name], batches_.NumberOf(generation, epoch, ordinal, batch))) continue;
        time_.Fail(fmt::format("checkpoint {}: a bucket lacks batch {} of shard {}/{}/{}", name,
                               batch, generation, epoch, ordinal));
      }
    }
  }
}

void SimulatedStorage::CheckNewest(Core& core) {
  const auto& checkpoints = core.parameters().checkpoints();
  if (core.parameters().IsDurable() && !checkpoints.empty()) durable_ = checkpoints.back().name;
  if (checkpoints.empty() || checkpoints.back().name == newest_) return;
  newest_ = checkpoints.back().name;
  if (committed_.insert(newest_).second) OnNewCheckpoint(newest_);
  const Dataset* dataset = core.dispatcher().Find(Plan::kDataset);
  if (dataset == nullptr) return;
  const checkpoint::ShardSet& covered = checkpoints.back().covered;
  Check(core, newest_, [&](int64_t epoch, uint64_t ordinal) {
    return covered.Contains(dataset->id(), dataset->row().generation, epoch, ordinal);
  });
}

void SimulatedStorage::OnNewCheckpoint(const std::string& name) {
  ++sums_.saves;
  // Never both of the two that a restore may use.
  const bool damaged = time_.Faulty() && good_since_damage_ >= 1 && time_.Chance() < plan_.damage;
  folders_[name].damaged = damaged;
  good_since_damage_ = damaged ? 0 : good_since_damage_ + 1;
  if (damaged) time_.Note("{} is damaged", name);
}

void SimulatedStorage::CheckAll(Core& core) {
  // A checkpoint that turns out to be damaged after the job has ended cannot be replaced.
  if (durable_.empty()) return time_.Fail("the job succeeded, and not all of it was saved");
  Check(core, durable_, [](int64_t, uint64_t) { return true; });
}

}  // namespace edl::master
