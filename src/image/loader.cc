#include "image/loader.h"

#include <sstream>

namespace edl::image {
namespace {

Result<LoadCommand> IfInstalled(const LocalClusterHints& hints, LoadCommand load) {
  const std::string& program = load.command.front();
  if (hints.has_program(program)) return load;
  return NotFound(
      "--load: the current context '{}' is a {}, but {}, which loads images there, is not in $PATH",
      hints.context, load.cluster, program);
}

}  // namespace

Result<LoadCommand> FindLoadCommand(const LocalClusterHints& hints,
                                    const std::filesystem::path& archive) {
  const std::string file = archive.string();
  if (!hints.command.empty()) {
    LoadCommand load{.cluster = "cluster of $ELASTICDL_LOAD_IMAGE", .command = {}};
    std::istringstream words(hints.command);
    for (std::string word; words >> word;) load.command.push_back(word);
    load.command.push_back(file);
    return load;
  }
  const std::string& context = hints.context;
  if (context.starts_with("kind-")) {
    const std::string name = context.substr(5);
    return IfInstalled(
        hints, {"kind cluster " + name, {"kind", "load", "image-archive", file, "--name", name}});
  }
  if (context.starts_with("k3d-")) {
    const std::string name = context.substr(4);
    return IfInstalled(
        hints, {"k3d cluster " + name, {"k3d", "image", "import", file, "--cluster", name}});
  }
  if (context == "minikube") {
    return IfInstalled(hints, {"minikube cluster", {"minikube", "image", "load", file}});
  }
  if (hints.has_program("k3s") && (context == "default" || context.empty())) {
    return LoadCommand{"k3s node", {"k3s", "ctr", "-n", "k8s.io", "images", "import", file}};
  }
  return NotFound(
      "--load: {}, and that is not a cluster of kind, k3d, k3s or minikube; set "
      "$ELASTICDL_LOAD_IMAGE to "
      "the command that loads an archive of images, or use `elasticdl zoo push`",
      context.empty() ? "no cluster is configured"
                      : fmt::format("the current context is '{}'", context));
}

}  // namespace edl::image
