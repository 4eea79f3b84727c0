#include "image/dockerfile.h"

#include <fmt/format.h>

namespace edl::image {
namespace {

std::string Joined(const std::string& folder, const std::string& file) {
  return folder == "." ? file : folder + "/" + file;
}

// COPY in the form that takes any character in a path.
std::string Copy(const std::string& from, const std::string& to) {
  if (from.find(' ') == std::string::npos) return fmt::format("COPY {} {}\n", from, to);
  return fmt::format("COPY [\"{}\", \"{}\"]\n", from, to);
}

}  // namespace

std::string ZooDockerfile(const ZooRecipe& recipe) {
  std::string pip = "RUN pip install --no-cache-dir";
  if (!recipe.extra_pypi_index.empty()) pip += " --extra-index-url=" + recipe.extra_pypi_index;
  std::string out = fmt::format(
      "# The image of a job's models, which can run every role: master, worker, ps, chief and\n"
      "# evaluator. Written by elasticdl {} zoo init, and yours to edit. Build and push it with\n"
      "#   elasticdl zoo build --image=NAME .\n"
      "#   elasticdl zoo push NAME\n"
      "FROM {}\n\n"
      "# Python checks compiled files by content instead of time: equal files, equal layers.\n"
      "ARG SOURCE_DATE_EPOCH={}\n",
      recipe.version, recipe.base_image, kLayerTime);
  if (recipe.has_requirements) {
    out += "\n# What the models import; installed anew only when this file changes.\n";
    out += Copy(Joined(recipe.model_zoo, "requirements.txt"), "/tmp/requirements.txt");
    out += pip + " -r /tmp/requirements.txt\n";
  }
  out += "\n# ElasticDL: the program (also the master) and what training programs import.\n";
  if (recipe.wheels.empty()) {
    out += fmt::format(
        "{0} \\\n    elasticai_api=={1} \\\n    elasticdl_api=={1} \\\n    elasticdl_client=={1}\n",
        pip, recipe.version);
  } else {
    out += Copy(recipe.wheels + "/*.whl", "/tmp/wheels/");
    out += pip + " /tmp/wheels/*.whl\n";
  }
  if (!recipe.cluster_spec.empty()) {
    const size_t slash = recipe.cluster_spec.rfind('/');
    const std::string name =
        slash == std::string::npos ? recipe.cluster_spec : recipe.cluster_spec.substr(slash + 1);
    out += "\n# How the cluster wants its pods.\n";
    out += Copy(recipe.cluster_spec, "/cluster_spec/" + name);
  }
  out += "\n# The models change most, so they come last.\n";
  out += Copy(recipe.model_zoo, "/model_zoo");
  out += "WORKDIR /\n";
  if (!recipe.user.empty()) out += fmt::format("USER {}\n", recipe.user);
  return out;
}

std::string ZooDockerignore() {
  return "# No part of an image.\n"
         "Dockerfile\n"
         ".dockerignore\n"
         ".git\n"
         "**/__pycache__\n"
         "**/*.pyc\n";
}

bool HasFixedTime(const std::string& dockerfile) {
  size_t at = 0;
  while (at < dockerfile.size()) {
    const size_t end = std::min(dockerfile.find('\n', at), dockerfile.size());
    const std::string_view line = std::string_view(dockerfile).substr(at, end - at);
    if (line.starts_with("ARG SOURCE_DATE_EPOCH") || line.starts_with("ENV SOURCE_DATE_EPOCH")) {
      return true;
    }
    at = end + 1;
  }
  return false;
}

}  // namespace edl::image
