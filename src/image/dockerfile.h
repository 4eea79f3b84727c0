#pragma once

#include <string>

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

// The time that layers get where a Dockerfile is made for that (`ARG SOURCE_DATE_EPOCH`), so that
// the same files make the same layers: 1980-01-01, the first that archives of all kinds can hold.
inline constexpr long long kLayerTime = 315'532'800;

// Whether `dockerfile` is made for layers with a fixed time. In others, Python would take every
// compiled file for stale.
bool HasFixedTime(const std::string& dockerfile);

}  // namespace edl::image
