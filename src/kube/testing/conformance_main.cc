// Runs the conformance suite against the API server of $KUBECONFIG, in the namespace
// $EDL_NAMESPACE, which has to exist.

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "kube/config.h"
#include "kube/testing/conformance.h"

namespace edl::kube {
namespace {

Config* found = nullptr;  // set before the first test runs

class FromKubeconfig final : public ConformanceServer {
 public:
  Config config() override { return *found; }
  std::string ns() override { return found->ns; }
};

INSTANTIATE_TEST_SUITE_P(Real, KubeConformance, testing::Values(MakeServer([] {
                           return std::make_unique<FromKubeconfig>();
                         })));

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int Main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  auto config = LoadConfig({.kubeconfig = Environment("KUBECONFIG"), .home = Environment("HOME")});
  if (!config.ok()) {
    std::cerr << config.status().message() << "\n";
    return 2;
  }
  if (const std::string ns = Environment("EDL_NAMESPACE"); !ns.empty()) {
    config->ns = ns;
  }
  found = &*config;
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace edl::kube

int main(int argc, char** argv) { return edl::kube::Main(argc, argv); }
