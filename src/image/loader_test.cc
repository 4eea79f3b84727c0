#include "image/loader.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"

namespace edl::image {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

LocalClusterHints Signs(std::string context, std::set<std::string> programs) {
  return {.context = std::move(context),
          .has_program = [programs](const std::string& name) { return programs.contains(name); }};
}

TEST(LoadCommand, DependsOnTheCurrentContext) {
  EXPECT_THAT(FindLoadCommand(Signs("kind-demo", {"kind", "k3s"}), "i.tar")->command,
              ElementsAre("kind", "load", "image-archive", "i.tar", "--name", "demo"));
  EXPECT_THAT(FindLoadCommand(Signs("k3d-demo", {"k3d"}), "i.tar")->command,
              ElementsAre("k3d", "image", "import", "i.tar", "--cluster", "demo"));
  EXPECT_THAT(FindLoadCommand(Signs("minikube", {"minikube"}), "i.tar")->command,
              ElementsAre("minikube", "image", "load", "i.tar"));
  EXPECT_THAT(FindLoadCommand(Signs("default", {"k3s"}), "i.tar")->command,
              ElementsAre("k3s", "ctr", "-n", "k8s.io", "images", "import", "i.tar"));
}

TEST(LoadCommand, IsTheConfiguredCommandIfThereIsOne) {
  LocalClusterHints hints = Signs("kind-demo", {"kind"});
  hints.command = "tools/cluster  load";
  EXPECT_THAT(FindLoadCommand(hints, "i.tar")->command,
              ElementsAre("tools/cluster", "load", "i.tar"));
}

TEST(LoadCommand, IsNotFoundWithAHint) {
  const std::vector<std::pair<LocalClusterHints, std::string>> cases = {
      {Signs("", {}), "no cluster is configured"},
      {Signs("gke_x", {"k3s", "kind"}), "the current context is 'gke_x'"},
      {Signs("kind-demo", {}), "kind, which loads images there, is not in $PATH"},
  };
  for (const auto& [hints, message] : cases) {
    const auto load = FindLoadCommand(hints, "i.tar");
    EXPECT_THAT(load, StatusIs(Code::kNotFound));
    EXPECT_THAT(load.status().message(), HasSubstr(message));
  }
}

}  // namespace
}  // namespace edl::image
