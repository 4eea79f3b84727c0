#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "base/status.h"
#include "checkpoint/manifest.h"
#include "master/parameters/parameter_keeper.h"

namespace edl::ps_control {

// The folders of checkpoints. Storage may hang: every call returns immediately, and its callback
// runs as that of a ServerChannel does. Neither a save nor a restore waits for a removal.
class CheckpointStore {
 public:
  using OnDone = std::function<void(Status)>;
  using OnManifest = std::function<void(Result<checkpoint::Manifest>)>;

  virtual ~CheckpointStore() = default;

  // Makes the folder of a new checkpoint. AlreadyExists: it is there.
  virtual void MakeFolder(const std::filesystem::path& folder, OnDone done) = 0;
  // Writes the manifest, which turns the folder into a checkpoint.
  virtual void WriteManifest(const std::filesystem::path& folder,
                             const checkpoint::Manifest& manifest, OnDone done) = 0;
  // NotFound: the folder is missing or holds no checkpoint. Unavailable: the folder above it is
  // missing too, so its volume is probably not mounted. DataLoss: the checkpoint is damaged.
  virtual void ReadManifest(const std::filesystem::path& folder, OnManifest done) = 0;
  virtual void Remove(const master::DropCheckpoint& drop) = 0;
  virtual void Remove(const master::CollectOrphans& collect) = 0;
};

}  // namespace edl::ps_control
