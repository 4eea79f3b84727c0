#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "image/host_settings.h"

namespace edl::image {

// An image to be built.
struct BuildRequest {
  std::string image;
  std::filesystem::path context;
  std::filesystem::path dockerfile;
  std::map<std::string, std::string> arguments;  // of the Dockerfile
  std::map<std::string, std::string> labels;
  bool use_cache = true;
  bool pull = false;                  // look for a newer base image, also where there is one
  std::optional<int64_t> layer_time;  // none: as it happens
  HostSettings host;
  std::filesystem::path pip_config;  // a file with host.pip_config
};

// A program that makes images. Immutable.
class Builder {
 public:
  virtual ~Builder() = default;

  virtual std::string name() const = 0;
  // The command lines. Credentials, stores and registries are as the program is configured.
  virtual std::vector<std::string> Build(const BuildRequest& request) const = 0;
  virtual std::vector<std::string> Push(const std::string& image) const = 0;
  // Writes an archive as `docker save` does, which holds the image under its full name.
  virtual std::vector<std::string> Save(const std::string& image, const std::string& full_name,
                                        const std::filesystem::path& archive) const = 0;
};

// In the order in which they are looked for.
std::vector<std::string> BuilderNames();

// The builder that is asked for, or, for "", the first that is there; docker, where `docker_host`
// says that it was set up for this shell. NotFound: it is not there, with the way out.
Result<std::unique_ptr<Builder>> FindBuilder(
    const std::string& asked, const std::function<bool(const std::string&)>& is_there,
    const std::string& docker_host);

}  // namespace edl::image
