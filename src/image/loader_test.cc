#include "image/loader.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace edl::image {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

LocalClusterSigns Signs(std::string context, std::set<std::string> programs) {
  return {.context = std::move(context),
          .is_there = [programs](const std::string& name) { return programs.contains(name); }};
}

TEST(LoadWay, IsThatOfTheCurrentContext) {
  EXPECT_THAT(FindLoadWay(Signs("kind-demo", {"kind", "k3s"}), "i.tar")->command,
              ElementsAre("kind", "load", "image-archive", "i.tar", "--name", "demo"));
  EXPECT_THAT(FindLoadWay(Signs("k3d-demo", {"k3d"}), "i.tar")->command,
              ElementsAre("k3d", "image", "import", "i.tar", "--cluster", "demo"));
  EXPECT_THAT(FindLoadWay(Signs("minikube", {"minikube"}), "i.tar")->command,
              ElementsAre("minikube", "image", "load", "i.tar"));
  EXPECT_THAT(FindLoadWay(Signs("default", {"k3s"}), "i.tar")->command,
              ElementsAre("k3s", "ctr", "-n", "k8s.io", "images", "import", "i.tar"));
}

TEST(LoadWay, IsWhatTheShellWasToldFirst) {
  LocalClusterSigns signs = Signs("kind-demo", {"kind"});
  signs.command = "tools/cluster  load";
  EXPECT_THAT(FindLoadWay(signs, "i.tar")->command, ElementsAre("tools/cluster", "load", "i.tar"));
}

TEST(LoadWay, IsMissedWithAWayOut) {
  const std::vector<std::pair<LocalClusterSigns, std::string>> cases = {
      {Signs("", {}), "no cluster is configured"},
      {Signs("gke_x", {"k3s", "kind"}), "the current context is 'gke_x'"},
      {Signs("kind-demo", {}), "kind is not in $PATH"},
  };
  for (const auto& [signs, message] : cases) {
    const auto way = FindLoadWay(signs, "i.tar");
    EXPECT_EQ(way.status().code(), Code::kNotFound);
    EXPECT_THAT(way.status().message(), HasSubstr(message));
  }
}

}  // namespace
}  // namespace edl::image
