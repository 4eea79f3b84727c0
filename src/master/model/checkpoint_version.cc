#include "master/model/checkpoint_version.h"

#include "checkpoint/manifest.h"

namespace edl::master {

int64_t CheckpointVersion(const std::string& folder) {
  const Result<checkpoint::Manifest> manifest = checkpoint::ReadManifest(folder);
  return manifest.ok() ? manifest->version : 0;
}

}  // namespace edl::master
