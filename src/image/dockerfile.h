#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace edl::image {

// What `elasticdl zoo init` knows of an image. Paths are relative to the folder that the image is
// built from.
struct ZooRecipe {
  std::string base_image;
  std::string extra_pypi_index;  // may be empty
  std::string model_zoo;         // "." for the folder itself
  bool has_requirements = false;
  std::string wheels;        // the folder of our packages' wheels; empty: from the index
  std::string cluster_spec;  // a file; may be empty
  std::string user;          // empty: the base image's
  std::string version;       // of our packages
};

// The Dockerfile of an image that can run every role of a job. What changes often comes last.
std::string ZooDockerfile(const ZooRecipe& recipe);

// What of that folder is no part of an image.
std::string ZooDockerignore();

// The time that all files in layers get, so that the same files make the same layers: what the
// Dockerfile sets SOURCE_DATE_EPOCH to. None: it sets none, and Python in its image would take
// every compiled file for stale if times changed.
std::optional<int64_t> LayerTime(std::string_view dockerfile);

}  // namespace edl::image
