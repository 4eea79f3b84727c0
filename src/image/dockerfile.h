#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace edl::image {

// The packages of ElasticDL that an image of models contains.
inline constexpr std::array<std::string_view, 5> kZooPackages = {
    "elasticai_api", "elasticdl", "elasticdl_api", "elasticdl_client", "elasticdl_preprocessing"};

// What `elasticdl zoo init` writes into a Dockerfile. Paths are relative to the build context.
struct ZooRecipe {
  std::string base_image;
  std::string extra_pypi_index;  // may be empty
  std::string model_zoo;         // "." for the build context itself
  bool has_requirements = false;
  std::string wheels;  // the folder of ElasticDL's wheels; empty: install from the index
  // The wheels have no package elasticdl for Python 3.12 and later. It is then left out of an image
  // with such a Python, which can still run jobs with --job_command.
  bool only_python_311 = false;
  std::string cluster_spec;  // a file; may be empty
  std::string user;          // empty: the user of the base image
  std::string version;       // of ElasticDL's packages
};

// The Dockerfile of an image that can run every role of a job. Layers that change often come last.
std::string ZooDockerfile(const ZooRecipe& recipe);

// The .dockerignore: files of the build context that are not copied into an image.
std::string ZooDockerignore();

// The time that all files in layers get, so that equal files make equal layers: the value of
// SOURCE_DATE_EPOCH in the Dockerfile. nullopt: the Dockerfile does not set it. Times must then not
// be changed, because Python in the image would treat every compiled file as stale.
std::optional<int64_t> LayerTime(std::string_view dockerfile);

}  // namespace edl::image
