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

// An image to build.
struct BuildRequest {
  std::string image;
  std::filesystem::path context;
  std::filesystem::path dockerfile;
  std::map<std::string, std::string> arguments;  // for ARG lines of the Dockerfile
  std::map<std::string, std::string> labels;
  bool use_cache = true;
  bool pull = false;                  // pull the base image even if it exists locally
  std::optional<int64_t> layer_time;  // see LayerTime; nullopt: the time of the build
  HostSettings host;
  std::filesystem::path pip_config;  // a file that contains host.pip_config
};

// The command lines of a program that builds images. Immutable.
class Builder {
 public:
  virtual ~Builder() = default;

  virtual std::string name() const = 0;
  // Each returns a command line. Credentials, storage and registries are those of the program's own
  // configuration.
  virtual std::vector<std::string> Build(const BuildRequest& request) const = 0;
  virtual std::vector<std::string> Push(const std::string& image) const = 0;
  // Saves the image to an archive in the format of `docker save`, under its full name.
  virtual std::vector<std::string> Save(const std::string& image, const std::string& full_name,
                                        const std::filesystem::path& archive) const = 0;
};

// The names of all builders, in the order in which they are preferred.
std::vector<std::string> BuilderNames();

// The builder named `requested`. If that is empty: docker if `docker_host` ($DOCKER_HOST) is set,
// else the first one that is installed. NotFound: not installed; the message says what to do.
Result<std::unique_ptr<Builder>> FindBuilder(
    const std::string& requested, const std::function<bool(const std::string&)>& has_program,
    const std::string& docker_host);

}  // namespace edl::image
