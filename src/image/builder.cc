#include "image/builder.h"

#include <fmt/ranges.h>

namespace edl::image {
namespace {

using Command = std::vector<std::string>;

void Add(Command& command, const std::string& flag,
         const std::map<std::string, std::string>& values) {
  for (const auto& [name, value] : values) {
    command.push_back(flag);
    command.push_back(fmt::format("{}={}", name, value));
  }
}

void AddRest(Command& command, const BuildRequest& request) {
  Add(command, "--build-arg", request.arguments);
  Add(command, "--label", request.labels);
  if (!request.use_cache) command.emplace_back("--no-cache");
  if (request.pull) command.emplace_back("--pull");
  command.insert(command.end(), {"-f", request.dockerfile.string(), "-t", request.image,
                                 request.context.string()});
}

// buildah and podman, which share their options. Both pass proxies to the build by themselves.
class BuildahLike : public Builder {
 public:
  explicit BuildahLike(std::string name) : name_(std::move(name)) {}

  std::string name() const override { return name_; }

  Command Build(const BuildRequest& request) const override {
    // The host's network, because a proxy may listen on the host's loopback address.
    Command command = {name_, "build", "--layers", "--network=host"};
    if (request.layer_time.has_value()) {
      command.push_back(fmt::format("--timestamp={}", *request.layer_time));
    }
    if (!request.host.certificates.empty()) {
      command.push_back(
          fmt::format("--volume={}:{}:ro", request.host.certificates.string(), kBuildCertificates));
    }
    // Always mounted, also if it is empty, because the mount point changes the layer.
    command.push_back(fmt::format("--volume={}:/etc/pip.conf:ro", request.pip_config.string()));
    AddRest(command, request);
    return command;
  }

  Command Push(const std::string& image) const override { return {name_, "push", image}; }

  Command Save(const std::string& image, const std::string& full_name,
               const std::filesystem::path& archive) const override {
    return {name_, "push", "--quiet", image,
            fmt::format("docker-archive:{}:{}", archive.string(), full_name)};
  }

 private:
  const std::string name_;
};

// docker mounts nothing into a build. Proxies are build arguments that docker predefines; settings
// of pip are build arguments that have an effect only if the Dockerfile declares them.
class Docker : public Builder {
 public:
  std::string name() const override { return "docker"; }

  Command Build(const BuildRequest& request) const override {
    Command command = {"docker", "build", "--network=host"};
    Add(command, "--build-arg", request.host.proxies);
    Add(command, "--build-arg", request.host.pip_variables);
    if (request.layer_time.has_value()) {
      command.push_back("--build-arg");
      command.push_back(fmt::format("SOURCE_DATE_EPOCH={}", *request.layer_time));
    }
    AddRest(command, request);
    return command;
  }

  Command Push(const std::string& image) const override { return {"docker", "push", image}; }

  Command Save(const std::string& image, const std::string&,
               const std::filesystem::path& archive) const override {
    return {"docker", "save", "-o", archive.string(), image};
  }
};

std::unique_ptr<Builder> Make(const std::string& name) {
  if (name == "docker") return std::make_unique<Docker>();
  return std::make_unique<BuildahLike>(name);
}

}  // namespace

std::vector<std::string> BuilderNames() { return {"buildah", "podman", "docker"}; }

Result<std::unique_ptr<Builder>> FindBuilder(
    const std::string& requested, const std::function<bool(const std::string&)>& has_program,
    const std::string& docker_host) {
  if (!requested.empty()) {
    if (has_program(requested)) return Make(requested);
    return NotFound(
        "--builder={0}: {0} is not in $PATH; install it (Debian: apt install {1}), or remove "
        "the flag to use one of {2}",
        requested, requested == "docker" ? "docker.io" : requested,
        fmt::join(BuilderNames(), ", "));
  }
  if (!docker_host.empty() && has_program("docker")) return Make("docker");
  for (const std::string& name : BuilderNames()) {
    if (has_program(name)) return Make(name);
  }
  return NotFound(
      "cannot build images: none of {} is in $PATH; install one, for example buildah, which "
      "needs no daemon (Debian: apt install buildah)",
      fmt::join(BuilderNames(), ", "));
}

}  // namespace edl::image
