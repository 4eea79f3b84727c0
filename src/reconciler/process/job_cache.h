#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reconciler/process/versioned_store.h"
#include "reconciler/reconcile.h"

#include "base/clock.h"
#include "base/mutex.h"
#include "kube/object.h"
#include "kube/reflector.h"

namespace edl::reconciler {

// A job, and the objects that belong to it or have its label.
struct CachedJob {
  kube::Object object;
  std::vector<ReplicaPod> pods;
  std::vector<ReplicaService> services;
  std::optional<kube::Object> pod_group;
};

// The TFJobs of the cluster, their pods, services and PodGroups, in a compact form: there may be
// thousands of jobs that have ended. It follows the watches, and it knows this process's own writes
// before the watches report them.
//
// Thread-safe.
class JobCache {
 public:
  // `on_change` is called without a lock, with the key of each job that must be reconciled.
  JobCache(const Clock& clock, std::function<void(const kube::ObjectKey&)> on_change)
      : clock_(clock), on_change_(std::move(on_change)) {}

  // The listeners of the watches of each kind.
  kube::Reflector::Listener JobListener();
  kube::Reflector::Listener PodListener();
  kube::Reflector::Listener ServiceListener();
  kube::Reflector::Listener PodGroupListener();

  // This process has created or changed the object. These do not call on_change.
  void WroteJob(const kube::Object& job);
  void WrotePod(const kube::Object& pod);
  void WroteService(const kube::Object& service);
  void WrotePodGroup(const kube::Object& group);
  // The API server has answered with this state of an object that others write too, such as one
  // that existed already. If the state is new, on_change is called now, because the same state
  // from the watch will then be no change.
  void FoundJob(const kube::Object& job);
  void FoundPod(const kube::Object& pod);
  void FoundService(const kube::Object& service);
  // The API server has no object of this name. If it is cached with this uid, on_change is called.
  void MissedPod(const kube::ObjectKey& key, const std::string& uid);
  void MissedService(const kube::ObjectKey& key, const std::string& uid);
  // This process has requested the deletion of the object with this uid.
  void DeletedPod(const kube::ObjectKey& key, const std::string& uid);
  void DeletedService(const kube::ObjectKey& key, const std::string& uid);

  // Whether the data-shard service of this job may have a pod.
  bool HasShardPod(const kube::ObjectKey& job) const;
  // nullopt: there is no such job.
  std::optional<CachedJob> Find(const kube::ObjectKey& key) const;
  // Whether the lists of jobs, pods and services have arrived.
  bool synced() const;
  // Whether the list of PodGroups has arrived, which exists only with gang scheduling.
  bool pod_groups_listed() const;
  std::vector<kube::ObjectKey> UnfinishedJobs() const;
  size_t jobs() const;

 private:
  // A job is kept as text, which needs a tenth of the memory.
  struct JobText {
    std::string text;
    bool finished = false;
    bool operator==(const JobText&) const = default;
  };
  // A pod or service, and the job that owns it.
  template <typename T>
  struct Owned {
    T value;
    std::string owner_name;  // the name of its controller, if that is a TFJob; else empty
    bool operator==(const Owned&) const = default;
  };
  template <typename T>
  struct OwnedObjects {
    VersionedStore<Owned<T>> store;
    std::map<kube::ObjectKey, std::set<std::string>> by_job;  // names, by the key of the job
    bool listed = false;
  };
  using Keys = std::set<kube::ObjectKey>;
  // Where a state of an object comes from.
  enum class Source { kList, kWatch, kOwnWrite, kFound };

  static JobText Print(const kube::Object& job);
  template <typename T>
  static Keys JobsOf(const std::string& ns, const Owned<T>& owned);
  template <typename T>
  void Index(OwnedObjects<T>& in, const kube::ObjectKey& key, const Owned<T>& owned);
  template <typename T>
  void Unindex(OwnedObjects<T>& in, const kube::ObjectKey& key, const Owned<T>& owned);
  template <typename T, typename Read>
  void Put(OwnedObjects<T>& in, const kube::Object& object, const Read& read, Source source,
           Keys& changed);
  template <typename T>
  void Remove(OwnedObjects<T>& in, const kube::ObjectKey& key, const std::string& uid,
              const std::string& version, Keys& changed);
  template <typename T, typename Read>
  void Replace(OwnedObjects<T>& in, const kube::ObjectList& list, const Read& read, Keys& changed);
  template <typename T, typename Read>
  kube::Reflector::Listener ListenerOf(OwnedObjects<T>& in, const char* what, Read read);
  template <typename T>
  std::vector<T> Of(const OwnedObjects<T>& in, const kube::ObjectKey& job) const;

  // The clocks of the API server and of this machine may differ by hours. What is measured from the
  // creation or the deletion of a pod is measured from the moment when this process saw it.
  void UseOwnClock(ReplicaPod& pod, const ReplicaPod* before, const kube::Object& object,
                   Source source) const;
  void UseOwnClock(ReplicaService& /*service*/, const ReplicaService* /*before*/,
                   const kube::Object& /*object*/, Source /*source*/) const {}

  static void KeepSuccess(ReplicaPod& pod, const ReplicaPod* before);
  static void KeepSuccess(ReplicaService& /*service*/, const ReplicaService* /*before*/) {}

  // Remembers the pod, or forgets it, if it is no replica.
  void NoteShardPod(kube::WatchEvent::Kind kind, const kube::Object& pod) REQUIRES(mutex_);

  void Notify(const Keys& changed) const;

  const Clock& clock_;
  const std::function<void(const kube::ObjectKey&)> on_change_;

  mutable Mutex mutex_;
  VersionedStore<JobText> jobs_ GUARDED_BY(mutex_);
  bool jobs_listed_ GUARDED_BY(mutex_) = false;
  OwnedObjects<ReplicaPod> pods_ GUARDED_BY(mutex_);
  Keys shard_pods_ GUARDED_BY(mutex_);  // of data-shard services, which are read when needed
  OwnedObjects<ReplicaService> services_ GUARDED_BY(mutex_);
  VersionedStore<kube::Object> groups_ GUARDED_BY(mutex_);
  bool groups_listed_ GUARDED_BY(mutex_) = false;
};

// Removes the fields of a pod that the cache does not read.
void ReducePod(kube::Object& pod);

}  // namespace edl::reconciler
