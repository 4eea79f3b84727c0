#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "backend/cluster_options.h"
#include "backend/kubernetes/kubernetes_backend.h"
#include "backend/kubernetes/status_publisher.h"
#include "base/clock.h"
#include "base/status.h"
#include "job/job_spec.h"
#include "job/job_view.h"
#include "job/replica.h"
#include "kube/connection.h"
#include "kube/event_recorder.h"
#include "kube/lease.h"

namespace edl::backend::kubernetes {

// The cluster-side parts of a master that runs in a pod: the connection to its cluster, the lease
// of the ledger, the backend, the publisher of the job's status, and the requests of users.
class ClusterMaster {
 public:
  enum class Outcome { kSucceeded, kFailed };

  // `environment` names the pod of this process.
  static Result<std::unique_ptr<ClusterMaster>> Make(
      const job::JobSpec& job, const ClusterOptions& options, const Clock& clock,
      const std::map<std::string, std::string>& environment);
  ~ClusterMaster();

  // Blocks until no other master can write to the ledger on the job's claim. Terminates this
  // process when another master takes the ledger. Does nothing if the ledger is on a volume of the
  // pod.
  Status AcquireLedger();
  // Blocks while another master might hold the ledger. Call it before each write.
  void AwaitLedger();

  KubernetesBackend& backend() { return *backend_; }
  std::string master_address() const { return maker_.MasterAddress(); }

  // Calls `stop` and `scale` when a user requests them with annotations of the master's pod.
  void WatchRequests(std::function<void(std::string reason)> stop,
                     std::function<void(int workers)> scale);
  // Records a Kubernetes event, which `kubectl describe` shows, when something keeps a replica from
  // running.
  void RecordWarning(const job::ReplicaEvent& event);
  void Publish(const job::JobView& view);
  // Call it when the job has ended: deletes remaining pods, publishes the last status and events,
  // and releases the ledger.
  void End(const std::string& reason, Outcome outcome);

 private:
  ClusterMaster(const job::JobSpec& job, const ClusterOptions& options, const Clock& clock,
                kube::Config config, kube::Object pod);

  const kube::Object pod_;  // the master's pod: only its key and uid
  const bool shares_ledger_;
  kube::Connection connection_;
  const kube::Timing timing_;
  const kube::BootClock boot_clock_;  // leases also expire while this machine is suspended
  const PodMaker maker_;
  kube::LeaseHolder lease_;
  kube::EventRecorder recorder_;
  std::unique_ptr<StatusPublisher> publisher_;
  std::unique_ptr<KubernetesBackend> backend_;
  std::jthread lease_keeper_;
  std::jthread recorder_thread_;
};

}  // namespace edl::backend::kubernetes
