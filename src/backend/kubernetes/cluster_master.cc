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

void LogLedgerHolder(const std::string& holder) {
  LOG_INFO("waiting for the ledger, which the master in pod {} still holds", holder);
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
        "ELASTICDL_POD_NAME, ELASTICDL_POD_UID and ELASTICDL_POD_NAMESPACE are not all set: with "
        "--backend=kubernetes the master must run in a pod that `elasticdl train` created");
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
  const bool never = options.restart_policy == PodRestartPolicy::kNever;
  backend_ = std::make_unique<KubernetesBackend>(
      connection_, timing_, maker_,
      KubernetesBackend::Options{.master = pod_.AsOwner(),
                                 .restart = never ? Restart::kNever : Restart::kByKubelet});
  recorder_thread_ = std::jthread([this](const std::stop_token& stop) { recorder_.Run(stop); });
}

ClusterMaster::~ClusterMaster() = default;

Status ClusterMaster::AcquireLedger() {
  if (!shares_ledger_) return Ok();
  const auto on_error = [](const Status& error) {
    LOG_WARNING("cannot renew the lease of the ledger: {}; retrying", error.message());
  };
  EDL_RETURN_IF_ERROR(lease_.Acquire({}, LogLedgerHolder, on_error));
  lease_keeper_ = std::jthread([this, on_error](const std::stop_token& stop) {
    const Status kept = lease_.Keep(stop, on_error);
    if (kept.ok()) return;
    LOG_ERROR("another master holds the ledger: {}; this master restarts", kept.message());
    _exit(job::kMasterLostLedger);
  });
  return Ok();
}

void ClusterMaster::AwaitLedger() {
  constexpr std::chrono::milliseconds kPoll{50};
  if (!shares_ledger_ || lease_.held()) return;
  LOG_WARNING("the lease of the ledger was not renewed in time; writes wait for its renewal");
  while (!lease_.held()) std::this_thread::sleep_for(kPoll);
  LOG_INFO("the lease of the ledger was renewed; writes continue");
}

void ClusterMaster::WatchRequests(std::function<void(std::string)> stop,
                                  std::function<void(int)> scale) {
  // The annotations that were handled last. Only the thread of the backend uses them.
  auto handled = std::make_shared<std::pair<std::string, std::string>>();
  backend_->WatchMaster(
      [handled, stop = std::move(stop), scale = std::move(scale)](const kube::Object& pod) {
        const kube::Object::Labels notes = pod.annotations();
        const auto note = [&](std::string_view name) { return Find(notes, std::string(name)); };
        const std::string reason = note(kStopAnnotation);
        if (reason != std::exchange(handled->first, reason) && !reason.empty()) stop(reason);
        const std::string workers = note(kNumWorkersAnnotation);
        if (workers == std::exchange(handled->second, workers) || workers.empty()) return;
        int number = -1;
        const auto [end, error] =
            std::from_chars(workers.data(), workers.data() + workers.size(), number);
        if (error == std::errc() && end == workers.data() + workers.size() && number >= 1 &&
            number <= job::kMostWorkers) {
          scale(number);
        } else {
          LOG_WARNING("annotation {}={} of pod {}: expected a number of workers from 1 to {}",
                      kNumWorkersAnnotation, workers, pod.name(), job::kMostWorkers);
        }
      });
}

void ClusterMaster::RecordWarning(const job::ReplicaEvent& event) {
  const auto warning = WarningOf(event);
  if (!warning.has_value()) return;
  recorder_.Record(pod_, kube::EventType::kWarning, warning->reason, warning->note);
}

void ClusterMaster::Publish(const job::JobView& view) {
  // A ConfigMap holds at most 1 MiB, and each change writes all of it.
  constexpr size_t kMaxBytes = 256 << 10;
  publisher_->Publish(job::FitJson(view, kMaxBytes));
}

void ClusterMaster::End(const std::string& reason, Outcome outcome) {
  const bool succeeded = outcome == Outcome::kSucceeded;
  // Deletes also pods that do not end by themselves, for example because of a sidecar.
  const std::vector<std::string> left = backend_->EndAll(std::chrono::minutes(5));
  if (!left.empty()) {
    LOG_ERROR(
        "{} pod(s) of the job could not be deleted, the first is {}; retry with `elasticdl stop`",
        left.size(), left.front());
  }
  recorder_.Record(pod_, succeeded ? kube::EventType::kNormal : kube::EventType::kWarning,
                   succeeded ? "JobSucceeded" : "JobFailed",
                   reason.empty() ? "the job has ended" : reason);
  if (!publisher_->Flush(std::chrono::seconds(10))) {
    LOG_WARNING("cannot publish how the job ended: the API server does not answer");
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
