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

// Runs replicas as pods of one job, owned by its master's pod, and gives each slot that others
// reach a service of its own.
//
// What the cluster refuses for now (a quota, a missing permission, an API server that is away)
// stays Pending, with the reason, and is tried again. What it refuses for good is Launch's answer.
//
// What should not run is deleted until it is gone: each pod of this master that was stopped, or
// whose replica has ended, however the pod came to exist. Services of running replicas that
// somebody deleted are made again.
//
// Thread-safe. Calls may be made from the watcher too.
class KubernetesBackend final : public Backend {
 public:
  struct Options {
    kube::OwnerReference master;
    Restart restart = Restart::kNever;
    std::chrono::milliseconds try_again_after{2'000};
    // A pod that was created and is not seen for so long is looked for.
    std::chrono::milliseconds look_after{10'000};
    // Containers beside the replica's have so long to end after it before the pod is deleted.
    std::chrono::milliseconds sidecar_grace{10'000};
    // How often services that are missing are looked for.
    std::chrono::milliseconds services_every{30'000};
  };

  // `connection` outlives this.
  KubernetesBackend(kube::Connection& connection, const kube::Timing& timing, PodMaker maker,
                    Options options);
  ~KubernetesBackend() override;

  // Calls `on_pod` with the master's own pod, if it is known, and whenever it changes, on threads
  // of the caller and of the backend: what users write there is for the master. Once.
  void WatchMaster(std::function<void(const kube::Object& pod)> on_pod);

  Status Launch(const job::ReplicaSpec& spec) override;
  Status Stop(const std::string& name, std::chrono::milliseconds grace) override;
  void Watch(std::function<void(const job::ReplicaEvent&)> on_event) override;
  Status Acknowledge(const std::string& name) override;
  Result<LogPiece> Logs(const std::string& name, int64_t offset, int64_t at_most) override;
  Result<std::string> Tail(const std::string& name, size_t most_lines, int64_t most_bytes) override;
  Result<std::string> AddressOf(job::Role role, int index) override;

  // Deletes every pod of this master that still runs, and waits until each is gone or told to go,
  // at most for `timeout`. Names those that are neither. Pods that have ended stay, for their
  // logs.
  std::vector<std::string> EndAll(std::chrono::milliseconds timeout);

 private:
  // A replica's pod, as the informer saw it last.
  struct Pod {
    std::string uid;
    bool terminal = false;
    bool deleting = false;
  };
  struct Replica {
    job::ReplicaEvent last;  // what a new watcher is told; without a name: nothing
    job::Role role = job::Role::kWorker;
    int index = 0;
    int64_t id = 0;
    std::optional<Pod> pod;
    bool unwanted = false;  // its pod is to go
    std::chrono::seconds grace{1};
    Time delete_at;  // not before
    Duration delete_wait = Duration::zero();
    bool seen = false;  // its pod, by the informer
    bool told_running = false;
    bool acknowledged = false;
    std::optional<job::ReplicaSpec> pending_create;  // refused for now
    Time create_at;                                  // of an pending_create one: the next try
    Duration create_wait = Duration::zero();
    std::optional<Time> unseen_since;  // created, and the informer has not seen it yet
  };

  void OnPod(const kube::Object& pod);
  void OnMasterPod(const kube::Object& pod);
  void OnPodGone(const kube::Object& pod);
  void OnSynced();
  // The role of a pod that this job's master launched.
  std::optional<job::Role> RoleOf(const kube::Object& pod) const;
  void Tell(Replica& replica, job::ReplicaEvent event) REQUIRES(mutex_);
  void TellExit(const std::string& name, Replica& replica, job::ExitCause cause) REQUIRES(mutex_);

  // Ok: the pod is there, or was.
  Status Create(const job::ReplicaSpec& spec);
  Status PointServiceAt(const job::ReplicaSpec& spec);
  Status CreateService(const kube::Object& service);
  void Retry(const std::stop_token& stop);
  // Deletes what should not run, as soon as there is something.
  void Clean(const std::stop_token& stop);
  struct Doomed {
    std::string name;
    std::string uid;
    std::chrono::seconds grace;
  };
  // What is to be deleted now. `all`: nothing else runs.
  std::vector<Doomed> TakeDoomed(bool& all) REQUIRES(mutex_);
  bool IsDoomed(const Replica& replica) const REQUIRES(mutex_);
  void DeletePods(const std::vector<Doomed>& doomed, bool all, const std::stop_token& stop);
  Status DeleteAllPods(std::chrono::seconds grace, const std::stop_token& stop);
  // When the next deletion is due, if one is.
  std::optional<Time> NextDeletion() const REQUIRES(mutex_);
  void RecreateServices(const std::stop_token& stop);
  void RetryCreates(const std::stop_token& stop);
  // A pod may come and go while nobody watches.
  void LookForUnseen(const std::stop_token& stop);
  kube::ObjectKey KeyOf(const std::string& name) const { return {maker_.ns(), name}; }

  const kube::Timing timing_;
  kube::Client client_;
  kube::Client hasty_;
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
