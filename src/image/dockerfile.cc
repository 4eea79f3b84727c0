#include "image/dockerfile.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include <fmt/format.h>

namespace edl::image {
namespace {

// 1980-01-01, the earliest time that all archive formats can store.
constexpr int64_t kLayerTime = 315'532'800;

std::string Joined(const std::string& folder, const std::string& file) {
  return folder == "." ? file : folder + "/" + file;
}

// The packages of ElasticDL, as arguments of pip.
std::string Packages(const ZooRecipe& recipe) {
  std::string out;
  for (const std::string_view name : kZooPackages) {
    const bool limited = recipe.only_python_311 && name == "elasticdl";
    out += limited
               ? fmt::format(" \\\n    'elasticdl=={}; python_version < \"3.12\"'", recipe.version)
               : fmt::format(" \\\n    {}=={}", name, recipe.version);
  }
  return out + "\n";
}

// Whether the folder of the wheels is inside the folder of the models.
bool WheelsAreInModels(const ZooRecipe& recipe) {
  return !recipe.wheels.empty() &&
         (recipe.model_zoo == "." || recipe.wheels.starts_with(recipe.model_zoo + "/"));
}

// A COPY line, in the JSON form if the path contains spaces.
std::string Copy(const std::string& from, const std::string& to) {
  if (from.find(' ') == std::string::npos) return fmt::format("COPY {} {}\n", from, to);
  return fmt::format("COPY [\"{}\", \"{}\"]\n", from, to);
}

}  // namespace

std::string ZooDockerfile(const ZooRecipe& recipe) {
  std::string pip = "RUN pip install --no-cache-dir";
  if (!recipe.extra_pypi_index.empty()) pip += " --extra-index-url=" + recipe.extra_pypi_index;
  std::string out = fmt::format(
      "# An image with the models of a job, for every role: master, worker, ps, chief and\n"
      "# evaluator. Written by elasticdl {} zoo init; you may edit it. Build and push it with\n"
      "#   elasticdl zoo build --image=NAME .\n"
      "#   elasticdl zoo push NAME\n",
      recipe.version);
  if (WheelsAreInModels(recipe)) {
    const std::string inside =
        recipe.model_zoo == "." ? recipe.wheels : recipe.wheels.substr(recipe.model_zoo.size() + 1);
    out += fmt::format(
        "FROM {} AS models\n{}# The folder of the wheels is not a part of the models.\n"
        "RUN rm -rf '/model_zoo/{}'\n\n",
        recipe.base_image, Copy(recipe.model_zoo, "/model_zoo"), inside);
  }
  out += fmt::format(
      "FROM {}\n\n"
      "# Python then checks compiled files by content, not by time, so that equal files make "
      "equal\n"
      "# layers.\n"
      "ARG SOURCE_DATE_EPOCH={}\n",
      recipe.base_image, kLayerTime);
  if (recipe.has_requirements) {
    out +=
        "\n# Packages that the models import; this layer is rebuilt only when the file changes.\n";
    out += Copy(Joined(recipe.model_zoo, "requirements.txt"), "/tmp/requirements.txt");
    out += pip + " -r /tmp/requirements.txt\n";
  }
  out +=
      "\n# ElasticDL: the binary (also the master) and the packages that training programs "
      "import.\n";
  if (!recipe.wheels.empty()) {
    out += Copy(recipe.wheels + "/*.whl", "/tmp/wheels/");
    pip += " --find-links=/tmp/wheels";
  }
  out += pip + Packages(recipe);
  if (!recipe.cluster_spec.empty()) {
    const size_t slash = recipe.cluster_spec.rfind('/');
    const std::string name =
        slash == std::string::npos ? recipe.cluster_spec : recipe.cluster_spec.substr(slash + 1);
    out += "\n# Adapts pods to the cluster.\n";
    out += Copy(recipe.cluster_spec, "/cluster_spec/" + name);
  }
  out += "\n# The models change most, so they come last.\n";
  out += WheelsAreInModels(recipe) ? "COPY --from=models /model_zoo /model_zoo\n"
                                   : Copy(recipe.model_zoo, "/model_zoo");
  out += "WORKDIR /\n";
  if (!recipe.user.empty()) out += fmt::format("USER {}\n", recipe.user);
  return out;
}

std::string ZooDockerignore() {
  return "# Not copied into the image.\n"
         "Dockerfile\n"
         ".dockerignore\n"
         ".git\n"
         "**/__pycache__\n"
         "**/*.pyc\n";
}

std::optional<int64_t> LayerTime(std::string_view dockerfile) {
  constexpr std::string_view kName = "SOURCE_DATE_EPOCH=";
  while (!dockerfile.empty()) {
    const size_t end = std::min(dockerfile.find('\n'), dockerfile.size());
    const std::string_view line = dockerfile.substr(0, end);
    dockerfile.remove_prefix(std::min(end + 1, dockerfile.size()));
    const size_t at = line.find(kName);
    if (line.starts_with('#') || at == std::string_view::npos) continue;
    const std::string_view value = line.substr(at + kName.size());
    int64_t seconds = 0;
    const auto [rest, error] = std::from_chars(value.data(), value.data() + value.size(), seconds);
    if (error == std::errc() && seconds >= 0) return seconds;
  }
  return std::nullopt;
}

}  // namespace edl::image
