#include "image/loader.h"

#include <sstream>

namespace edl::image {
namespace {

Result<LoadWay> Needing(const LocalClusterSigns& signs, LoadWay way) {
  const std::string& program = way.command.front();
  if (signs.is_there(program)) return way;
  return NotFound(
      "--load: the current context '{}' is a {}, but {} is not in $PATH, which loads images there",
      signs.context, way.cluster, program);
}

}  // namespace

Result<LoadWay> FindLoadWay(const LocalClusterSigns& signs, const std::filesystem::path& archive) {
  const std::string file = archive.string();
  if (!signs.command.empty()) {
    LoadWay way{.cluster = "cluster of $ELASTICDL_LOAD_IMAGE", .command = {}};
    std::istringstream words(signs.command);
    for (std::string word; words >> word;) way.command.push_back(word);
    way.command.push_back(file);
    return way;
  }
  const std::string& context = signs.context;
  if (context.starts_with("kind-")) {
    const std::string name = context.substr(5);
    return Needing(
        signs, {"kind cluster " + name, {"kind", "load", "image-archive", file, "--name", name}});
  }
  if (context.starts_with("k3d-")) {
    const std::string name = context.substr(4);
    return Needing(signs,
                   {"k3d cluster " + name, {"k3d", "image", "import", file, "--cluster", name}});
  }
  if (context == "minikube") {
    return Needing(signs, {"minikube cluster", {"minikube", "image", "load", file}});
  }
  if (signs.is_there("k3s") && (context == "default" || context.empty())) {
    return LoadWay{"k3s node", {"k3s", "ctr", "-n", "k8s.io", "images", "import", file}};
  }
  return NotFound(
      "--load: {}, which is no cluster of kind, k3d, k3s or minikube; set $ELASTICDL_LOAD_IMAGE to "
      "the command that loads an archive of images there, or use `elasticdl zoo push`",
      context.empty() ? "no cluster is configured"
                      : fmt::format("the current context is '{}'", context));
}

}  // namespace edl::image
