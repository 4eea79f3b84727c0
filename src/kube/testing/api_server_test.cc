#include "kube/testing/api_server.h"

#include <memory>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kube/testing/conformance.h"

namespace edl::kube {
namespace {

class InThisProcess final : public ConformanceServer {
 public:
  InThisProcess() {
    server_.Deny(fmt::format("system:serviceaccount:{}:{}", ns(), kAccountWithoutRoles),
                 "get secrets");
  }
  Config config() override { return server_.config(); }
  std::string ns() override { return "suite"; }

 private:
  ApiServer server_;
};

INSTANTIATE_TEST_SUITE_P(InThisProcess, KubeConformance, testing::Values(MakeServer([] {
                           return std::make_unique<InThisProcess>();
                         })));

}  // namespace
}  // namespace edl::kube
