#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backend/backend.h"
#include "backend/event_dispatcher.h"
#include "backend/kubernetes/pod_life.h"
#include "backend/kubernetes/pod_log.h"
#include "backend/kubernetes/pod_maker.h"
#include "base/mutex.h"
#include "kube/client.h"
#include "kube/connection.h"
#include "kube/informer.h"

namespace edl::backend::kubernetes {

// Runs the replicas of one job as pods, owned by the master's pod. Each slot that other processes
// connect to has its own service.
//
// Launch retries temporary errors of the cluster (an exceeded quota, a missing permission, an
// unavailable API server) in the background; meanwhile the replica is Pending with the reason.
// Launch returns permanent errors.
//
// The backend keeps deleting pods that should not run until they are deleted: pods of stopped
// replicas and of replicas that have exited. It recreates services of running replicas that
// somebody deleted.
//
// Thread-safe. The watcher may call it.
class KubernetesBackend final : public Backend {
 public:
  struct Options {
    kube::OwnerReference master;
    Restart restart = Restart::kNever;
    std::chrono::milliseconds retry_every{2'000};
    // A created pod that the informer has not reported for this long is looked up.
    std::chrono::milliseconds lookup_after{10'000};
    // Time for sidecar containers to end after the replica, before the pod is deleted.
    std::chrono::milliseconds sidecar_grace{10'000};
    // How often the backend looks for missing services.
    std::chrono::milliseconds services_every{30'000};
  };

  // `connection` outlives this.
  KubernetesBackend(kube::Connection& connection, const kube::Timing& timing, PodMaker maker,
                    Options options);
  ~KubernetesBackend() override;

  // Calls `on_pod` with the master's pod, if it is known, and whenever it changes, on threads of
  // the caller and of the backend. Users write requests to that pod. Call it once.
  void WatchMaster(std::function<void(const kube::Object& pod)> on_pod);

  Status Launch(const job::ReplicaSpec& spec) override;
  Status Stop(const std::string& name, std::chrono::milliseconds grace) override;
  void Watch(std::function<void(const job::ReplicaEvent&)> on_event) override;
  Status Acknowledge(const std::string& name) override;
  Result<LogPiece> Logs(const std::string& name, int64_t offset, int64_t at_most) override;
  Result<std::string> Tail(const std::string& name, size_t max_lines, int64_t max_bytes) override;
  Result<std::string> AddressOf(job::Role role, int index) override;

  // Deletes every running pod of this master, and waits at most `timeout` until each is deleted or
  // being deleted. Returns the names of the other pods. Terminated pods remain, for their logs.
  std::vector<std::string> EndAll(std::chrono::milliseconds timeout);

 private:
  // The last state of a replica's pod that the informer reported.
  struct Pod {
    std::string uid;
    bool terminal = false;
    bool deleting = false;
  };
  struct Replica {
    job::ReplicaEvent last;  // for a new watcher; without a name: none yet
    job::Role role = job::Role::kWorker;
    int index = 0;
    int64_t id = 0;
    std::optional<Pod> pod;
    bool unwanted = false;  // its pod must be deleted
    std::chrono::seconds grace{1};
    Time delete_at;  // earliest time of the next deletion
    Duration delete_wait = Duration::zero();
    bool seen = false;  // the informer has reported its pod
    bool reported_running = false;
    bool acknowledged = false;
    std::optional<job::ReplicaSpec> pending_create;  // failed, will be retried
    Time create_at;                                  // the next attempt of pending_create
    Duration create_wait = Duration::zero();
    std::optional<Time> unseen_since;  // created, and not yet reported by the informer
  };

  void OnPod(const kube::Object& pod);
  void OnMasterPod(const kube::Object& pod);
  void OnPodDeleted(const kube::Object& pod);
  void OnSynced();
  // The role of a pod that this job's master launched.
  std::optional<job::Role> RoleOf(const kube::Object& pod) const;
  void Notify(Replica& replica, job::ReplicaEvent event) REQUIRES(mutex_);
  void NotifyExit(const std::string& name, Replica& replica, job::ExitCause cause) REQUIRES(mutex_);

  // Ok: the pod exists, or existed.
  Status Create(const job::ReplicaSpec& spec);
  Status PointServiceAt(const job::ReplicaSpec& spec);
  Status CreateService(const kube::Object& service);
  void Retry(const std::stop_token& stop);
  // Runs on its own thread: deletes pods that should not run.
  void Clean(const std::stop_token& stop);
  struct PodToDelete {
    std::string name;
    std::string uid;
    std::chrono::seconds grace;
  };
  struct Deletions {
    std::vector<PodToDelete> pods;
    bool all = true;  // no other replica runs
  };
  // The deletions that are due now.
  Deletions TakeDeletions() REQUIRES(mutex_);
  bool NeedsDeletion(const Replica& replica) const REQUIRES(mutex_);
  void DeletePods(const Deletions& deletions, const std::stop_token& stop);
  Status DeleteAllPods(std::chrono::seconds grace, const std::stop_token& stop);
  // When the next deletion is due; nullopt: there is none.
  std::optional<Time> NextDeletion() const REQUIRES(mutex_);
  void RecreateServices(const std::stop_token& stop);
  void RetryCreates(const std::stop_token& stop);
  // Detects pods that were created and deleted while the informer did not watch.
  void LookUpUnseen(const std::stop_token& stop);
  kube::ObjectKey KeyOf(const std::string& name) const { return {maker_.ns(), name}; }

  const kube::Timing timing_;
  kube::Client client_;
  kube::Client short_timeout_client_;  // for calls that block other work
  const PodMaker maker_;
  const Options options_;
  EventDispatcher dispatcher_;

  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, Replica> replicas_ GUARDED_BY(mutex_);
  bool ending_ GUARDED_BY(mutex_) = false;
  bool synced_ GUARDED_BY(mutex_) = false;
  std::function<void(const kube::Object&)> on_master_pod_ GUARDED_BY(mutex_);
  std::optional<kube::Object> master_pod_ GUARDED_BY(mutex_);

  Mutex log_mutex_;
  std::map<std::string, PodLog> logs_ GUARDED_BY(log_mutex_);

  std::unique_ptr<kube::Informer> informer_;
  std::jthread follower_;
  std::jthread retrier_;
  std::jthread cleaner_;
};

}  // namespace edl::backend::kubernetes
