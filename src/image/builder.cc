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

// buildah and podman: one library, one language. Both hand proxies on by themselves.
class BuildahLike : public Builder {
 public:
  explicit BuildahLike(std::string name) : name_(std::move(name)) {}

  std::string name() const override { return name_; }

  Command Build(const BuildRequest& request) const override {
    // The host's network: a proxy on the loopback is one there only.
    Command command = {name_, "build", "--layers", "--network=host"};
    if (request.layer_time.has_value()) {
      command.push_back(fmt::format("--timestamp={}", *request.layer_time));
    }
    if (!request.host.certificates.empty()) {
      command.push_back(
          fmt::format("--volume={}:{}:ro", request.host.certificates.string(), kBuildCertificates));
    }
    // Always, also where it says nothing: the place that it leaves in a layer is the same then.
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

// docker mounts nothing into a build: proxies are its own arguments, and what pip is told reaches a
// Dockerfile only where that declares the argument.
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
    const std::string& asked, const std::function<bool(const std::string&)>& is_there,
    const std::string& docker_host) {
  if (!asked.empty()) {
    if (is_there(asked)) return Make(asked);
    return NotFound(
        "--builder={0}: there is no {0} in $PATH; install it (Debian: apt install {1}), or leave "
        "the flag out for {2}",
        asked, asked == "docker" ? "docker.io" : asked, fmt::join(BuilderNames(), ", "));
  }
  if (!docker_host.empty() && is_there("docker")) return Make("docker");
  for (const std::string& name : BuilderNames()) {
    if (is_there(name)) return Make(name);
  }
  return NotFound(
      "nothing here builds images: none of {} is in $PATH; install one, for example buildah, which "
      "needs no daemon (Debian: apt install buildah)",
      fmt::join(BuilderNames(), ", "));
}

}  // namespace edl::image
