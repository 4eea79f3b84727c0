#pragma once

#include <string>

namespace edl::job {

// One mount of --volume: a claim or a host path seen at mount_path.
struct Volume {
  std::string claim_name;
  std::string host_path;
  std::string type;  // host_path only: Directory, DirectoryOrCreate, File, ...
  std::string mount_path;
  std::string sub_path;
  bool operator==(const Volume&) const = default;
};

}  // namespace edl::job
