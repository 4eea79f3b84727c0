#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace edl::image {

// The name of an image as people type it: "elasticdl:mnist", "gcr.io/project/elasticdl:mnist".
struct ImageName {
  std::string host;  // "docker.io" where none is typed
  std::string path;  // "library/elasticdl" where one word is typed
  std::string tag;   // "latest" where neither tag nor digest is typed
  std::string digest;

  // All of it, as a node looks for it.
  std::string Full() const;
};

// InvalidArgument says which part is wrong.
Result<ImageName> ParseImageName(std::string_view text);

}  // namespace edl::image
