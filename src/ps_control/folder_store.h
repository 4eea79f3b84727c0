#pragma once

#include <filesystem>

#include "ps_control/checkpoint_store.h"
#include "ps_control/operation_channel.h"
#include "ps_control/task_thread.h"

namespace edl::ps_control {

// Checkpoints in a folder of the file system. Saves and restores use the threads of their channels;
// removals have a thread of their own, as removing a large checkpoint takes long.
//
// Thread-safe.
class FolderStore final : public CheckpointStore {
 public:
  // The threads outlive it.
  FolderStore(std::filesystem::path folder, TaskThread& save_thread, TaskThread& restore_thread,
              Post post);

  void MakeFolder(const std::filesystem::path& folder, OnDone done) override;
  void WriteManifest(const std::filesystem::path& folder, const checkpoint::Manifest& manifest,
                     OnDone done) override;
  void ReadManifest(const std::filesystem::path& folder, OnManifest done) override;
  void Remove(const master::DropCheckpoint& drop) override;
  void Remove(const master::CollectOrphans& collect) override;

 private:
  const std::filesystem::path folder_;  // of the job's checkpoints
  TaskThread& save_thread_;
  TaskThread& restore_thread_;
  const Post post_;
  TaskThread removal_thread_;
};

}  // namespace edl::ps_control
