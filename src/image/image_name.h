#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace edl::image {

// The parts of an image name as users type it: "elasticdl:mnist", "gcr.io/project/elasticdl:mnist".
struct ImageName {
  std::string host;  // "docker.io" by default
  std::string path;  // "library/elasticdl" for "elasticdl" without a host
  std::string tag;   // "latest" if there is neither tag nor digest
  std::string digest;

  // The complete name, as a node of a cluster uses it.
  std::string Full() const;
};

// InvalidArgument: the message names the wrong part.
Result<ImageName> ParseImageName(std::string_view text);

}  // namespace edl::image
