#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace edl::job {

// What must exist at a host path, as in a hostPath volume of Kubernetes.
enum class HostPathType {
  kAny,  // no type was given
  kDirectory,
  kDirectoryOrCreate,
  kFile,
  kFileOrCreate,
  kSocket,
  kCharDevice,
  kBlockDevice,
};
// The name in Kubernetes, for example "DirectoryOrCreate"; "" for kAny.
std::string_view NameOf(HostPathType type);

// One volume of --volume: a claim or a host path, mounted at mount_path.
struct Volume {
  std::string claim_name;
  std::string host_path;
  HostPathType type = HostPathType::kAny;  // host_path only
  std::string mount_path;
  std::string sub_path;
  bool operator==(const Volume&) const = default;
};

// Parses --volume: "host_path=/a,mount_path=/data; claim_name=c,mount_path=/b,sub_path=x", or a
// JSON list of objects. InvalidArgument: the message has the position.
Result<std::vector<Volume>> ParseVolumes(std::string_view text);

}  // namespace edl::job
