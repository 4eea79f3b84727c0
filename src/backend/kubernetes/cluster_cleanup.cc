#include "backend/kubernetes/cluster_cleanup.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "backend/kubernetes/kubernetes_jobs.h"
#include "backend/kubernetes/pod_life.h"
#include "base/environment.h"
#include "base/log.h"
#include "job/role.h"
#include "kube/client.h"
#include "kube/config.h"
#include "kube/pod.h"
#include "kube/resource.h"
#include "kube/timing.h"

namespace edl::backend::kubernetes {
namespace {

constexpr std::chrono::minutes kTimeout{3};
constexpr std::chrono::seconds kPause{2};

class Cleanup final : public ClusterCleanup {
 public:
  Cleanup(kube::Config config, kube::ObjectKey pod, const Clock& clock)
      : pod_(std::move(pod)),
        clock_(clock),
        connection_(std::move(config), clock, {}),
        client_(connection_, kube::RealTiming(clock), {.tries = 3}),
        short_timeout_client_(connection_, kube::RealTiming(clock),
                              {.timeout = std::chrono::milliseconds(1'000), .tries = 1}) {}

  Status NoteInterruption() override {
    EDL_ASSIGN_OR_RETURN(const kube::Object pod, short_timeout_client_.Get(kube::kPods, pod_));
    const std::string why = "its master was terminated: " +
                            kube::DescribeDisruption(kube::PodStateOf(pod).disruption());
    const nlohmann::json patch = {{"metadata", {{"annotations", {{kInterruptedAnnotation, why}}}}}};
    return short_timeout_client_.Patch(kube::kConfigMaps, pod_, patch).status();
  }

  Status DeleteReplicas() override {
    const Time deadline = clock_.Now() + kTimeout;
    while (true) {
      Status done = DeleteOnce();
      if (done.ok() || clock_.Now() >= deadline) return done;
      LOG_WARNING("{}; retrying", done.message());
      (void)kube::RealTiming(clock_).wait(kPause, {});
    }
  }

 private:
  Status DeleteOnce() {
    EDL_ASSIGN_OR_RETURN(const kube::Object pod, client_.Get(kube::kPods, pod_));
    const kube::Selector replicas{
        .labels = fmt::format("{}={},{}={},{}!={}", kAppLabel, kApp, kJobLabel,
                              pod.label(std::string(kJobLabel)).value_or(""), kRoleLabel,
                              job::NameOf(job::Role::kMaster)),
        .fields = "status.phase!=Succeeded,status.phase!=Failed"};
    const Status deleted = client_.DeleteMany(kube::kPods, pod_.ns, replicas);
    EDL_ASSIGN_OR_RETURN(const kube::ObjectList left, client_.List(kube::kPods, pod_.ns, replicas));
    for (const kube::Object& one : left.items) {
      if (one.deleting()) continue;
      EDL_RETURN_IF_ERROR(client_.Delete(kube::kPods, one.key(), {.uid = one.uid()}));
    }
    return deleted.code() == Code::kPermissionDenied ? Ok() : deleted;
  }

  const kube::ObjectKey pod_;
  const Clock& clock_;
  kube::Connection connection_;
  kube::Client client_;
  kube::Client short_timeout_client_;
};

}  // namespace

std::unique_ptr<ClusterCleanup> ClusterCleanup::Make(const Clock& clock) {
  kube::ObjectKey pod{Variable("ELASTICDL_POD_NAMESPACE"), Variable("ELASTICDL_POD_NAME")};
  if (pod.name.empty() || pod.ns.empty()) return nullptr;
  Result<kube::Config> config =
      kube::LoadConfig({.kubeconfig = Variable("KUBECONFIG"),
                        .home = Variable("HOME"),
                        .service_host = Variable("KUBERNETES_SERVICE_HOST"),
                        .service_port = Variable("KUBERNETES_SERVICE_PORT")});
  if (!config.ok()) {
    LOG_WARNING("{}", config.status().message());
    return nullptr;
  }
  return std::make_unique<Cleanup>(*std::move(config), std::move(pod), clock);
}

}  // namespace edl::backend::kubernetes
