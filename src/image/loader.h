#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace edl::image {

// How to recognise the kind of a cluster on this machine.
struct LocalClusterHints {
  std::string context;  // the kubeconfig's current context; may be empty
  std::string command;  // $ELASTICDL_LOAD_IMAGE; may be empty
  std::function<bool(const std::string&)> has_program;  // in $PATH
};

// The command that loads an archive of images onto the nodes of a local cluster.
struct LoadCommand {
  std::string cluster;               // shown to users: "kind cluster demo"
  std::vector<std::string> command;  // includes the path of the archive
};

// NotFound: no known kind of local cluster; the message says what to do.
Result<LoadCommand> FindLoadCommand(const LocalClusterHints& hints,
                                    const std::filesystem::path& archive);

}  // namespace edl::image
