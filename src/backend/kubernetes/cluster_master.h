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

// What a master in a pod has around it: its cluster, its right to the ledger, its replicas as pods,
// the publisher of the job's status, and what users tell it.
class ClusterMaster {
 public:
  // `environment` says which pod this is.
  static Result<std::unique_ptr<ClusterMaster>> Make(
      const job::JobSpec& job, const ClusterOptions& options, const Clock& clock,
      const std::map<std::string, std::string>& environment);
  ~ClusterMaster();

  // Blocks until no other master can write to the ledger on the job's claim, and ends this process
  // when another has it. Nothing to do where the ledger is the pod's own.
  Status AcquireLedger();
  // Blocks while another master could have the ledger: to be called before each write.
  void AwaitLedger();

  KubernetesBackend& backend() { return *backend_; }
  std::string master_address() const { return maker_.MasterAddress(); }

  // What users ask for by annotations of the master's pod.
  void Obey(std::function<void(std::string reason)> stop, std::function<void(int workers)> scale);
  // For `kubectl describe`: what keeps a replica from running.
  void Note(const job::ReplicaEvent& event);
  void Show(const job::JobView& view);
  // The job has ended: lets what is said be heard, and gives the ledger back.
  void End(const std::string& reason, bool succeeded);

 private:
  ClusterMaster(const job::JobSpec& job, const ClusterOptions& options, const Clock& clock,
                kube::Config config, kube::Object pod);

  const kube::Object pod_;  // the master's, as far as it can be named
  const bool shares_ledger_;
  kube::Connection connection_;
  const kube::Timing timing_;
  const kube::BootClock boot_clock_;  // a right expires while this machine is suspended, too
  const PodMaker maker_;
  kube::LeaseHolder lease_;
  kube::EventRecorder recorder_;
  std::unique_ptr<StatusPublisher> publisher_;
  std::unique_ptr<KubernetesBackend> backend_;
  std::jthread lease_keeper_;
  std::jthread recorder_thread_;
};

}  // namespace edl::backend::kubernetes
