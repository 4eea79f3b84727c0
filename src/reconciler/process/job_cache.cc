#include "reconciler/process/job_cache.h"

#include <algorithm>
#include <utility>

#include "reconciler/job_status.h"

#include "base/json.h"
#include "base/log.h"

namespace edl::reconciler {
namespace {

using EventKind = kube::WatchEvent::Kind;

std::string OwnerNameOf(const kube::Object& object) {
  const auto controller = ControllerOf(object);
  if (!controller || controller->kind != kTFJobs.kind) return "";
  return controller->name;
}

std::optional<ReplicaPod> ReadReplicaPod(const kube::Object& pod) { return ReadPod(pod); }

auto LogErrors(const char* what) {
  return [what](const Status& error) {
    LOG_WARNING("operator: cannot follow {}: {}; retrying", what, error.message());
  };
}

}  // namespace

void ReducePod(kube::Object& pod) {
  pod.metadata().erase("managedFields");
  pod.metadata().erase("annotations");
  nlohmann::json& fields = pod.fields();
  const nlohmann::json& spec = FieldAt(fields, {"spec"});
  nlohmann::json containers = nlohmann::json::array();
  for (const nlohmann::json& container : ListAt(spec, {"containers"})) {
    if (TextIn(container, "restartPolicy").empty()) continue;  // the policy of the pod
    containers.push_back({{"name", TextIn(container, "name")},
                          {"restartPolicy", TextIn(container, "restartPolicy")},
                          {"restartPolicyRules", ListAt(container, {"restartPolicyRules"})}});
  }
  fields["spec"] = {{"restartPolicy", TextIn(spec, "restartPolicy")},
                    {"nodeName", TextIn(spec, "nodeName")},
                    {"containers", std::move(containers)}};
}

JobCache::JobText JobCache::Print(const kube::Object& job) {
  kube::Object copy = job;
  copy.metadata().erase("managedFields");
  const JobStatus status = ParseStatus(FieldAt(copy.fields(), {"status"}));
  return {.text = Dump(copy.fields()), .finished = status.conditions.finished()};
}

void JobCache::Notify(const Keys& changed) const {
  for (const kube::ObjectKey& key : changed) on_change_(key);
}

// An object is shown to the job that controls it and to the job that its label names, which are
// mostly the same.
template <typename T>
JobCache::Keys JobCache::JobsOf(const std::string& ns, const Owned<T>& owned) {
  Keys keys;
  for (const std::string& name : {owned.owner_name, owned.value.job}) {
    if (!name.empty()) keys.insert({ns, name});
  }
  return keys;
}

template <typename T>
void JobCache::Index(OwnedObjects<T>& in, const kube::ObjectKey& key, const Owned<T>& owned) {
  for (const kube::ObjectKey& job : JobsOf(key.ns, owned)) in.by_job[job].insert(key.name);
}

template <typename T>
void JobCache::Unindex(OwnedObjects<T>& in, const kube::ObjectKey& key, const Owned<T>& owned) {
  for (const kube::ObjectKey& job : JobsOf(key.ns, owned)) {
    const auto names = in.by_job.find(job);
    if (names == in.by_job.end()) continue;
    names->second.erase(key.name);
    if (names->second.empty()) in.by_job.erase(names);
  }
}

void JobCache::UseOwnClock(ReplicaPod& pod, const ReplicaPod* before, const kube::Object& object,
                           Source source) const {
  const WallTime now = clock_.WallNow();
  if (before != nullptr) {
    pod.created = before->created;
  } else {
    const bool may_be_old = source == Source::kList || source == Source::kFound;
    pod.created = may_be_old ? std::min(pod.created, now) : now;
  }
  if (!pod.deletion_time) return;
  const bool was_deleted =
      before != nullptr && before->deletion_time.value_or(kUnknownEnd) != kUnknownEnd;
  pod.deletion_time = was_deleted ? *before->deletion_time : now + DeletionGraceOf(object);
}

// A success that was seen before the deletion stays one.
void JobCache::KeepSuccess(ReplicaPod& pod, const ReplicaPod* before) {
  if (before == nullptr || before->outcome != PodOutcome::kSucceeded || !pod.deletion_time) return;
  pod.outcome = PodOutcome::kSucceeded;
  pod.exit_code = before->exit_code;
  pod.reason.clear();
}

template <typename T, typename Read>
void JobCache::Put(OwnedObjects<T>& in, const kube::Object& object, const Read& read, Source source,
                   Keys& changed) {
  std::optional<T> value = read(object);
  if (!value) return;
  const kube::ObjectKey key = object.key();
  const auto* before = in.store.Find(key);
  const bool is_known = before != nullptr && before->uid == object.uid();
  const T* const earlier = is_known ? &before->value.value : nullptr;
  UseOwnClock(*value, earlier, object, source);
  KeepSuccess(*value, earlier);
  Owned<T> owned{*std::move(value), OwnerNameOf(object)};
  std::optional<Owned<T>> old;
  if (before != nullptr) old = before->value;
  const std::string version = object.resource_version();
  const bool answered = source == Source::kOwnWrite || source == Source::kFound;
  const bool stored = answered ? in.store.Wrote(key, object.uid(), version, owned)
                               : in.store.Watched(key, object.uid(), version, owned);
  if (!stored) return;
  if (old) {
    changed.merge(JobsOf(key.ns, *old));
    Unindex(in, key, *old);
  }
  Index(in, key, owned);
  changed.merge(JobsOf(key.ns, owned));
}

template <typename T>
void JobCache::Remove(OwnedObjects<T>& in, const kube::ObjectKey& key, const std::string& uid,
                      const std::string& version, Keys& changed) {
  const auto* before = in.store.Find(key);
  if (before == nullptr) return;
  const Owned<T> old = before->value;
  if (!in.store.WatchedDeletion(key, uid, version)) return;
  Unindex(in, key, old);
  changed.merge(JobsOf(key.ns, old));
}

template <typename T, typename Read>
void JobCache::Replace(OwnedObjects<T>& in, const kube::ObjectList& list, const Read& read,
                       Keys& changed) {
  std::set<kube::ObjectKey> listed;
  for (const kube::Object& object : list.items) {
    if (SlotOf(object)) listed.insert(object.key());
  }
  for (const auto& [key, gone] : in.store.Listed(listed, list.resource_version)) {
    Unindex(in, key, gone.value);
    changed.merge(JobsOf(key.ns, gone.value));
  }
  for (const kube::Object& object : list.items) Put(in, object, read, Source::kList, changed);
  in.listed = true;
}

template <typename T, typename Read>
kube::Reflector::Listener JobCache::ListenerOf(OwnedObjects<T>& in, const char* what, Read read) {
  return {.on_list =
              [this, &in, read](const kube::ObjectList& list) {
                Keys changed;
                {
                  const MutexLock lock(mutex_);
                  Replace(in, list, read, changed);
                }
                Notify(changed);
              },
          .on_event =
              [this, &in, read](EventKind kind, const kube::Object& object) {
                Keys changed;
                {
                  const MutexLock lock(mutex_);
                  // An object whose labels were changed may be no replica any more. Its last state
                  // must not stay.
                  if (kind == EventKind::kDeleted || !SlotOf(object)) {
                    Remove(in, object.key(), object.uid(), object.resource_version(), changed);
                  } else {
                    Put(in, object, read, Source::kWatch, changed);
                  }
                }
                Notify(changed);
              },
          .on_error = LogErrors(what)};
}

void JobCache::NoteShardPod(EventKind kind, const kube::Object& pod) {
  if (kind == EventKind::kDeleted) {
    shard_pods_.erase(pod.key());
  } else if (!SlotOf(pod)) {
    shard_pods_.insert(pod.key());
  }
}

kube::Reflector::Listener JobCache::PodListener() EDL_NO_THREAD_SAFETY_ANALYSIS {
  kube::Reflector::Listener replicas = ListenerOf(pods_, "pods", ReadReplicaPod);
  kube::Reflector::Listener both = replicas;
  both.on_list = [this, next = std::move(replicas.on_list)](kube::ObjectList list) {
    {
      const MutexLock lock(mutex_);
      shard_pods_.clear();
      for (const kube::Object& pod : list.items) NoteShardPod(EventKind::kAdded, pod);
    }
    next(std::move(list));
  };
  both.on_event = [this, next = std::move(replicas.on_event)](EventKind kind,
                                                              const kube::Object& pod) {
    {
      const MutexLock lock(mutex_);
      NoteShardPod(kind, pod);
    }
    next(kind, pod);
  };
  return both;
}

kube::Reflector::Listener JobCache::ServiceListener() EDL_NO_THREAD_SAFETY_ANALYSIS {
  return ListenerOf(services_, "services", ReadService);
}

kube::Reflector::Listener JobCache::JobListener() {
  return {.on_list =
              [this](const kube::ObjectList& list) {
                Keys changed;
                {
                  const MutexLock lock(mutex_);
                  std::set<kube::ObjectKey> listed;
                  for (const kube::Object& job : list.items) listed.insert(job.key());
                  for (const auto& [key, gone] : jobs_.Listed(listed, list.resource_version)) {
                    changed.insert(key);
                  }
                  for (const kube::Object& job : list.items) {
                    const bool is_new =
                        jobs_.Watched(job.key(), job.uid(), job.resource_version(), Print(job));
                    if (is_new) changed.insert(job.key());
                  }
                  jobs_listed_ = true;
                }
                Notify(changed);
              },
          .on_event =
              [this](EventKind kind, const kube::Object& job) {
                {
                  const MutexLock lock(mutex_);
                  const bool changed =
                      kind == EventKind::kDeleted
                          ? jobs_.WatchedDeletion(job.key(), job.uid(), job.resource_version())
                          : jobs_.Watched(job.key(), job.uid(), job.resource_version(), Print(job));
                  if (!changed) return;
                }
                on_change_(job.key());
              },
          .on_error =
              [](const Status& error) {
                LOG_WARNING("operator: cannot follow TFJobs: {}{}; retrying", error.message(),
                            error.code() == Code::kNotFound
                                ? " (is the CRD installed? kubectl apply -k "
                                  "elasticdl/manifests/tfjob-operator)"
                                : "");
              }};
}

kube::Reflector::Listener JobCache::PodGroupListener() {
  return {.on_list =
              [this](const kube::ObjectList& list) {
                Keys changed;
                {
                  const MutexLock lock(mutex_);
                  std::set<kube::ObjectKey> listed;
                  for (const kube::Object& group : list.items) listed.insert(group.key());
                  for (const auto& [key, gone] : groups_.Listed(listed, list.resource_version)) {
                    changed.insert(key);
                  }
                  for (const kube::Object& group : list.items) {
                    groups_.Watched(group.key(), group.uid(), group.resource_version(), group);
                    changed.insert(group.key());
                  }
                  groups_listed_ = true;
                }
                Notify(changed);
              },
          .on_event =
              [this](EventKind kind, const kube::Object& group) {
                {
                  const MutexLock lock(mutex_);
                  if (kind == EventKind::kDeleted) {
                    groups_.WatchedDeletion(group.key(), group.uid(), group.resource_version());
                  } else {
                    groups_.Watched(group.key(), group.uid(), group.resource_version(), group);
                  }
                }
                // The group of a job has its name.
                on_change_(group.key());
              },
          .on_error = LogErrors("PodGroups")};
}

void JobCache::WroteJob(const kube::Object& job) {
  const MutexLock lock(mutex_);
  jobs_.Wrote(job.key(), job.uid(), job.resource_version(), Print(job));
}

void JobCache::FoundJob(const kube::Object& job) {
  {
    const MutexLock lock(mutex_);
    const bool changed = jobs_.Wrote(job.key(), job.uid(), job.resource_version(), Print(job));
    if (!changed) return;
  }
  on_change_(job.key());
}

void JobCache::WrotePod(const kube::Object& pod) {
  Keys ignored;
  const MutexLock lock(mutex_);
  NoteShardPod(EventKind::kAdded, pod);
  Put(pods_, pod, ReadReplicaPod, Source::kOwnWrite, ignored);
}

void JobCache::WroteService(const kube::Object& service) {
  Keys ignored;
  const MutexLock lock(mutex_);
  Put(services_, service, ReadService, Source::kOwnWrite, ignored);
}

void JobCache::WrotePodGroup(const kube::Object& group) {
  const MutexLock lock(mutex_);
  groups_.Wrote(group.key(), group.uid(), group.resource_version(), group);
}

void JobCache::FoundPod(const kube::Object& pod) {
  Keys changed;
  {
    const MutexLock lock(mutex_);
    Put(pods_, pod, ReadReplicaPod, Source::kFound, changed);
  }
  Notify(changed);
}

void JobCache::FoundService(const kube::Object& service) {
  Keys changed;
  {
    const MutexLock lock(mutex_);
    Put(services_, service, ReadService, Source::kFound, changed);
  }
  Notify(changed);
}

void JobCache::MissedPod(const kube::ObjectKey& key, const std::string& uid) {
  Keys changed;
  {
    const MutexLock lock(mutex_);
    Remove(pods_, key, uid, "", changed);
  }
  Notify(changed);
}

void JobCache::MissedService(const kube::ObjectKey& key, const std::string& uid) {
  Keys changed;
  {
    const MutexLock lock(mutex_);
    Remove(services_, key, uid, "", changed);
  }
  Notify(changed);
}

void JobCache::DeletedPod(const kube::ObjectKey& key, const std::string& uid) {
  const MutexLock lock(mutex_);
  auto* entry = pods_.store.Find(key);
  if (entry == nullptr || entry->uid != uid || entry->value.value.deletion_time) return;
  entry->value.value.deletion_time = kUnknownEnd;
  // The outcome of a pod that had ended stays.
  PodOutcome& outcome = entry->value.value.outcome;
  if (outcome == PodOutcome::kPending || outcome == PodOutcome::kActive) {
    outcome = PodOutcome::kTerminating;
  }
}

void JobCache::DeletedService(const kube::ObjectKey& key, const std::string& uid) {
  const MutexLock lock(mutex_);
  auto* entry = services_.store.Find(key);
  if (entry != nullptr && entry->uid == uid) entry->value.value.deleting = true;
}

template <typename T>
std::vector<T> JobCache::Of(const OwnedObjects<T>& in, const kube::ObjectKey& job) const {
  std::vector<T> out;
  const auto names = in.by_job.find(job);
  if (names == in.by_job.end()) return out;
  for (const std::string& name : names->second) {
    if (const auto* entry = in.store.Find({job.ns, name})) out.push_back(entry->value.value);
  }
  return out;
}

bool JobCache::HasShardPod(const kube::ObjectKey& job) const {
  const MutexLock lock(mutex_);
  return shard_pods_.contains({job.ns, ShardServiceName(job.name)});
}

std::optional<CachedJob> JobCache::Find(const kube::ObjectKey& key) const {
  CachedJob out;
  std::string text;
  {
    const MutexLock lock(mutex_);
    const auto* job = jobs_.Find(key);
    if (job == nullptr) return std::nullopt;
    text = job->value.text;
    out.pods = Of(pods_, key);
    out.services = Of(services_, key);
    if (const auto* group = groups_.Find(key)) out.pod_group = group->value;
  }
  auto parsed = kube::Object::Parse(text);
  if (!parsed.ok()) return std::nullopt;  // it was printed by Dump
  out.object = *std::move(parsed);
  return out;
}

bool JobCache::synced() const {
  const MutexLock lock(mutex_);
  return jobs_listed_ && pods_.listed && services_.listed;
}

bool JobCache::pod_groups_listed() const {
  const MutexLock lock(mutex_);
  return groups_listed_;
}

std::vector<kube::ObjectKey> JobCache::UnfinishedJobs() const {
  std::vector<kube::ObjectKey> out;
  const MutexLock lock(mutex_);
  for (const auto& [key, job] : jobs_.entries()) {
    if (!job.value.finished) out.push_back(key);
  }
  return out;
}

size_t JobCache::jobs() const {
  const MutexLock lock(mutex_);
  return jobs_.entries().size();
}

}  // namespace edl::reconciler
