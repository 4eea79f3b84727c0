#include "image/builder.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::image {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::function<bool(const std::string&)> Only(std::set<std::string> names) {
  return [names = std::move(names)](const std::string& name) { return names.contains(name); };
}

BuildRequest Request() {
  return {.image = "gcr.io/p/elasticdl:mnist",
          .context = ".",
          .dockerfile = "./Dockerfile",
          .arguments = {{"GEN_DATA", "yes"}},
          .labels = {{"version", "2"}},
          .use_cache = false,
          .pull = true,
          .layer_time = 7,
          .host = {.proxies = {{"https_proxy", "http://p"}},
                   .certificates = "/ca.pem",
                   .pip_variables = {{"PIP_INDEX_URL", "http://i"}}},
          .pip_config = "/tmp/pip.conf"};
}

TEST(Builder, IsTheFirstOneThatIsInstalled) {
  EXPECT_EQ((*FindBuilder("", Only({"buildah", "podman", "docker"}), ""))->name(), "buildah");
  EXPECT_EQ((*FindBuilder("", Only({"podman", "docker"}), ""))->name(), "podman");
  EXPECT_EQ((*FindBuilder("", Only({"docker"}), ""))->name(), "docker");
  EXPECT_EQ((*FindBuilder("podman", Only({"buildah", "podman"}), ""))->name(), "podman");
}

TEST(Builder, IsDockerIfDockerHostIsSet) {
  EXPECT_EQ((*FindBuilder("", Only({"buildah", "docker"}), "tcp://minikube"))->name(), "docker");
  EXPECT_EQ((*FindBuilder("", Only({"buildah"}), "tcp://minikube"))->name(), "buildah");
}

TEST(Builder, IsNotFoundWithAHint) {
  const auto none = FindBuilder("", Only({}), "");
  EXPECT_THAT(none, StatusIs(Code::kNotFound));
  EXPECT_THAT(none.status().message(), HasSubstr("apt install buildah"));
  const auto docker = FindBuilder("docker", Only({"buildah"}), "");
  EXPECT_THAT(docker, StatusIs(Code::kNotFound));
  EXPECT_THAT(docker.status().message(), HasSubstr("apt install docker.io"));
}

TEST(Builder, BuildsWithBuildahAndPodmanAlike) {
  for (const std::string name : {"buildah", "podman"}) {
    EXPECT_THAT((*FindBuilder(name, Only({name}), ""))->Build(Request()),
                ElementsAre(name, "build", "--layers", "--network=host", "--timestamp=7",
                            "--volume=/ca.pem:/etc/ssl/certs/ca-certificates.crt:ro",
                            "--volume=/tmp/pip.conf:/etc/pip.conf:ro", "--build-arg",
                            "GEN_DATA=yes", "--label", "version=2", "--no-cache", "--pull", "-f",
                            "./Dockerfile", "-t", "gcr.io/p/elasticdl:mnist", "."));
  }
}

TEST(Builder, BuildsWithDocker) {
  EXPECT_THAT(
      (*FindBuilder("docker", Only({"docker"}), ""))->Build(Request()),
      ElementsAre("docker", "build", "--network=host", "--build-arg", "https_proxy=http://p",
                  "--build-arg", "PIP_INDEX_URL=http://i", "--build-arg", "SOURCE_DATE_EPOCH=7",
                  "--build-arg", "GEN_DATA=yes", "--label", "version=2", "--no-cache", "--pull",
                  "-f", "./Dockerfile", "-t", "gcr.io/p/elasticdl:mnist", "."));
}

TEST(Builder, PushesAndSaves) {
  const auto buildah = FindBuilder("", Only({"buildah"}), "");
  EXPECT_THAT((*buildah)->Push("a:b"), ElementsAre("buildah", "push", "a:b"));
  EXPECT_THAT((*buildah)->Save("a:b", "docker.io/library/a:b", "/t/i.tar"),
              ElementsAre("buildah", "push", "--quiet", "a:b",
                          "docker-archive:/t/i.tar:docker.io/library/a:b"));
  const auto docker = FindBuilder("", Only({"docker"}), "");
  EXPECT_THAT((*docker)->Push("a:b"), ElementsAre("docker", "push", "a:b"));
  EXPECT_THAT((*docker)->Save("a:b", "docker.io/library/a:b", "/t/i.tar"),
              ElementsAre("docker", "save", "-o", "/t/i.tar", "a:b"));
}

}  // namespace
}  // namespace edl::image
