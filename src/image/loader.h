#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace edl::image {

// What there is to know of a cluster on this machine.
struct LocalClusterSigns {
  std::string context;                               // the kubeconfig's current one; may be empty
  std::string command;                               // $ELASTICDL_LOAD_IMAGE; may be empty
  std::function<bool(const std::string&)> is_there;  // a program in $PATH
};

// How an archive of images gets onto the nodes of a local cluster.
struct LoadWay {
  std::string cluster;               // for people: "kind cluster demo"
  std::vector<std::string> command;  // of which the archive is a part
};

// NotFound: no cluster that runs on this machine is known, with the way out.
Result<LoadWay> FindLoadWay(const LocalClusterSigns& signs, const std::filesystem::path& archive);

}  // namespace edl::image
