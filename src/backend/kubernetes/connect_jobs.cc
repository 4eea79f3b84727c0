#include "backend/kubernetes/connect_jobs.h"

#include <utility>
#include <vector>

#include "backend/kubernetes/kubernetes_jobs.h"
#include "base/environment.h"
#include "kube/config.h"
#include "kube/connection.h"
#include "kube/timing.h"

namespace edl::backend::kubernetes {
namespace {

kube::ConfigSources KubeconfigSources() {
  return {.kubeconfig = Variable("KUBECONFIG"), .home = Variable("HOME")};
}

}  // namespace

std::string ClusterContext() {
  const Result<kube::Config> config = kube::LoadConfig(KubeconfigSources());
  return config.ok() ? config->context : "";
}

Result<std::unique_ptr<ClusterJobs>> ConnectClusterJobs(const Clock& clock, const std::string& ns,
                                                        PodCredentials pod_credentials) {
  kube::ConfigSources sources = KubeconfigSources();
  if (pod_credentials == PodCredentials::kAllowed) {
    sources.service_host = Variable("KUBERNETES_SERVICE_HOST");
    sources.service_port = Variable("KUBERNETES_SERVICE_PORT");
  }
  EDL_ASSIGN_OR_RETURN(kube::Config config, kube::LoadConfig(sources));
  if (!ns.empty()) config.ns = ns;
  std::vector<std::string> environment;
  for (const auto& [name, value] : Environment()) environment.push_back(name + "=" + value);
  const std::string where = config.ns;
  auto connection =
      std::make_unique<kube::Connection>(std::move(config), clock, std::move(environment));
  return std::unique_ptr<ClusterJobs>(
      std::make_unique<KubernetesJobs>(std::move(connection), kube::RealTiming(clock), where));
}

}  // namespace edl::backend::kubernetes
