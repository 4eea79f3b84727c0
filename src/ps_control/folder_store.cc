#include "ps_control/folder_store.h"

#include <system_error>
#include <utility>

#include <fmt/ranges.h>

#include "base/log.h"
#include "checkpoint/checkpoint_folder.h"

namespace edl::ps_control {
namespace {

namespace fs = std::filesystem;

Result<checkpoint::Manifest> Read(const fs::path& folder) {
  Result<checkpoint::Manifest> manifest = checkpoint::ReadManifest(folder);
  if (manifest.status().code() != Code::kNotFound) return manifest;
  const fs::path parent = fs::absolute(folder).parent_path();
  std::error_code error;
  if (fs::exists(parent, error)) return manifest;
  return Unavailable("{} does not exist; mount the volume of the checkpoints there",
                     parent.string());
}

}  // namespace

FolderStore::FolderStore(fs::path folder, TaskThread& save_thread, TaskThread& restore_thread,
                         Post post)
    : folder_(std::move(folder)),
      save_thread_(save_thread),
      restore_thread_(restore_thread),
      post_(std::move(post)) {}

void FolderStore::MakeFolder(const fs::path& folder, OnDone done) {
  save_thread_.Run([post = post_, folder, done = std::move(done)] {
    post([done, made = checkpoint::MakeCheckpointFolder(folder)] { done(made); });
  });
}

void FolderStore::WriteManifest(const fs::path& folder, const checkpoint::Manifest& manifest,
                                OnDone done) {
  save_thread_.Run([post = post_, folder, manifest, done = std::move(done)] {
    post([done, written = checkpoint::WriteManifest(folder, manifest)] { done(written); });
  });
}

void FolderStore::ReadManifest(const fs::path& folder, OnManifest done) {
  restore_thread_.Run([post = post_, folder, done = std::move(done)] {
    post([done, manifest = Read(folder)] { done(manifest); });
  });
}

void FolderStore::Remove(const master::DropCheckpoint& drop) {
  removal_thread_.Run([folder = folder_ / drop.name] {
    std::error_code error;
    fs::remove_all(folder, error);
    if (error) LOG_WARNING("cannot remove checkpoint {}: {}", folder.string(), error.message());
  });
}

void FolderStore::Remove(const master::CollectOrphans& collect) {
  removal_thread_.Run([folder = folder_, collect] {
    const std::vector<std::string> removed =
        checkpoint::RemoveOrphans(folder, collect.ledger, collect.keep, collect.below);
    if (!removed.empty()) {
      LOG_INFO("removed the folders of saves that were not finished: {}", fmt::join(removed, ", "));
    }
  });
}

}  // namespace edl::ps_control
