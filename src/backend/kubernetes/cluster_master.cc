#include "backend/kubernetes/cluster_master.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <unistd.h>

#include "backend/kubernetes/kubernetes_jobs.h"
#include "backend/kubernetes/replica_warning.h"
#include "base/log.h"
#include "job/master_exit.h"
#include "job/view_size.h"
#include "kube/config.h"
#include "kube/resource.h"

namespace edl::backend::kubernetes {
namespace {

std::string Find(const std::map<std::string, std::string>& in, const std::string& name) {
  const auto found = in.find(name);
  return found == in.end() ? "" : found->second;
}

void SayWhoHasTheLedger(const std::string& holder) {
  LOG_INFO("the ledger is another master's (pod {}) until it is known to be gone", holder);
}

}  // namespace

Result<std::unique_ptr<ClusterMaster>> ClusterMaster::Make(
    const job::JobSpec& job, const ClusterOptions& options, const Clock& clock,
    const std::map<std::string, std::string>& environment) {
  const std::string name = Find(environment, "ELASTICDL_POD_NAME");
  const std::string uid = Find(environment, "ELASTICDL_POD_UID");
  const std::string ns = Find(environment, "ELASTICDL_POD_NAMESPACE");
  if (name.empty() || uid.empty() || ns.empty()) {
    return FailedPrecondition(
        "with --backend=kubernetes the master runs in a pod that `elasticdl train` made, which "
        "says by ELASTICDL_POD_NAME, _UID and _NAMESPACE which one it is");
  }
  EDL_ASSIGN_OR_RETURN(
      kube::Config config,
      kube::LoadConfig({.kubeconfig = Find(environment, "KUBECONFIG"),
                        .home = Find(environment, "HOME"),
                        .service_host = Find(environment, "KUBERNETES_SERVICE_HOST"),
                        .service_port = Find(environment, "KUBERNETES_SERVICE_PORT")}));
  config.ns = ns;
  kube::Object pod(kube::kPods, {ns, name});
  pod.metadata()["uid"] = uid;
  return std::unique_ptr<ClusterMaster>(
      new ClusterMaster(job, options, clock, std::move(config), std::move(pod)));
}

ClusterMaster::ClusterMaster(const job::JobSpec& job, const ClusterOptions& options,
                             const Clock& clock, kube::Config config, kube::Object pod)
    : pod_(std::move(pod)),
      shares_ledger_(HasClaim(job)),
      connection_(std::move(config), clock, {}),
      timing_(kube::RealTiming(clock)),
      maker_(job, options, pod_.ns()),
      lease_(connection_, kube::RealTiming(boot_clock_),
             {.key = pod_.key(), .identity = pod_.uid()}),
      recorder_(connection_, timing_, {.component = "elasticdl-master", .instance = pod_.name()}) {
  publisher_ = std::make_unique<StatusPublisher>(connection_, timing_, pod_.key());
  const bool never = options.restart_policy == "Never";
  backend_ = std::make_unique<KubernetesBackend>(
      connection_, timing_, maker_,
      KubernetesBackend::Options{.master = pod_.AsOwner(),
                                 .restart = never ? Restart::kNever : Restart::kByKubelet});
  recorder_thread_ = std::jthread([this](const std::stop_token& stop) { recorder_.Run(stop); });
}

ClusterMaster::~ClusterMaster() = default;

Status ClusterMaster::AcquireLedger() {
  if (!shares_ledger_) return Ok();
  const auto on_trouble = [](const Status& trouble) {
    LOG_WARNING("the lease of the ledger: {}; it is tried again", trouble.message());
  };
  EDL_RETURN_IF_ERROR(lease_.Acquire({}, SayWhoHasTheLedger, on_trouble));
  lease_keeper_ = std::jthread([this, on_trouble](const std::stop_token& stop) {
    const Status kept = lease_.Keep(stop, on_trouble);
    if (kept.ok()) return;
    LOG_ERROR("another master has the ledger: {}; this one begins anew", kept.message());
    _exit(job::kMasterLostLedger);
  });
  return Ok();
}

void ClusterMaster::AwaitLedger() {
  constexpr std::chrono::milliseconds kPoll{50};
  if (!shares_ledger_ || lease_.held()) return;
  LOG_WARNING("the lease of the ledger was not renewed: nothing is written until it is");
  while (!lease_.held()) std::this_thread::sleep_for(kPoll);
  LOG_INFO("the lease of the ledger is renewed: the job goes on");
}

void ClusterMaster::Obey(std::function<void(std::string)> stop, std::function<void(int)> scale) {
  // The annotations as they were last obeyed, which only the backend's thread looks at.
  auto obeyed = std::make_shared<std::pair<std::string, std::string>>();
  backend_->WatchMaster(
      [obeyed, stop = std::move(stop), scale = std::move(scale)](const kube::Object& pod) {
        const kube::Object::Labels notes = pod.annotations();
        const auto note = [&](std::string_view name) { return Find(notes, std::string(name)); };
        const std::string reason = note(kStopAnnotation);
        if (reason != std::exchange(obeyed->first, reason) && !reason.empty()) stop(reason);
        const std::string workers = note(kNumWorkersAnnotation);
        if (workers == std::exchange(obeyed->second, workers) || workers.empty()) return;
        int number = -1;
        const auto [end, error] =
            std::from_chars(workers.data(), workers.data() + workers.size(), number);
        if (error == std::errc() && end == workers.data() + workers.size() && number >= 1 &&
            number <= job::kMostWorkers) {
          scale(number);
        } else {
          LOG_WARNING("annotation {}={} of pod {} is no number of workers from 1 to {}",
                      kNumWorkersAnnotation, workers, pod.name(), job::kMostWorkers);
        }
      });
}

void ClusterMaster::Note(const job::ReplicaEvent& event) {
  const auto warning = WarningOf(event);
  if (!warning.has_value()) return;
  recorder_.Record(pod_, kube::EventType::kWarning, warning->reason, warning->note);
}

void ClusterMaster::Show(const job::JobView& view) {
  // A ConfigMap holds 1 MiB, and is written again with each change.
  constexpr size_t kMostBytes = 256 << 10;
  publisher_->Show(job::FitJson(view, kMostBytes));
}

void ClusterMaster::End(const std::string& reason, bool succeeded) {
  // What has no exit of its own (a sidecar, a pod that nobody waits for) goes as well.
  const std::vector<std::string> left = backend_->EndAll(std::chrono::minutes(5));
  if (!left.empty()) {
    LOG_ERROR(
        "{} pod(s) of the job could not be deleted, the first: {}; `elasticdl stop` tries again",
        left.size(), left.front());
  }
  recorder_.Record(pod_, succeeded ? kube::EventType::kNormal : kube::EventType::kWarning,
                   succeeded ? "JobSucceeded" : "JobFailed",
                   reason.empty() ? "the job has ended" : reason);
  if (!publisher_->Flush(std::chrono::seconds(10))) {
    LOG_WARNING("the cluster does not show how the job ended: its API server does not answer");
  }
  recorder_.Flush();
  if (!lease_keeper_.joinable()) return;
  lease_keeper_.request_stop();
  lease_keeper_.join();
  if (const Status released = lease_.Release(); !released.ok()) {
    LOG_WARNING("{}", released.message());
  }
}

}  // namespace edl::backend::kubernetes
