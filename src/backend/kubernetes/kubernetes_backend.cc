#include "backend/kubernetes/kubernetes_backend.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/log.h"
#include "job/names.h"
#include "kube/pod.h"
#include "kube/resource.h"

namespace edl::backend::kubernetes {
namespace {

using Kind = job::ReplicaEvent::Kind;

// A job of a thousand workers is launched in seconds. What fails is tried again by the backend
// itself, which says meanwhile what it waits for.
const kube::ClientOptions kCalls{.calls_per_second = 200,
                                 .burst = 400,
                                 .timeout = std::chrono::milliseconds(10'000),
                                 .tries = 3,
                                 .patience = std::chrono::milliseconds(5'000)};

// Whether a refusal is one of the moment: a server that is away, a quota that is full.
bool MayPass(const Status& status) {
  switch (status.code()) {
    case Code::kUnavailable:
    case Code::kDeadlineExceeded:
    case Code::kResourceExhausted:
    case Code::kAborted:
      return true;
    default:
      return false;
  }
}

bool IsOwnedBy(const kube::Object& object, const std::string& uid) {
  const std::vector<kube::OwnerReference> owners = object.owners();
  return std::any_of(owners.begin(), owners.end(),
                     [&](const kube::OwnerReference& owner) { return owner.uid == uid; });
}

}  // namespace

KubernetesBackend::KubernetesBackend(kube::Connection& connection, const kube::Timing& timing,
                                     PodMaker maker, Options options)
    : timing_(timing),
      client_(connection, timing, kCalls),
      maker_(std::move(maker)),
      options_(std::move(options)) {
  kube::InformerCalls calls;
  calls.on_added = [this](const kube::Object& pod) { OnPod(pod); };
  calls.on_updated = [this](const kube::Object&, const kube::Object& pod) { OnPod(pod); };
  calls.on_deleted = [this](const kube::Object& pod) { OnPodGone(pod); };
  calls.on_synced = [this] { OnSynced(); };
  calls.on_trouble = [](const Status& trouble) {
    LOG_WARNING("watching the job's pods: {}", trouble.message());
  };
  informer_ = std::make_unique<kube::Informer>(
      connection,
      kube::Scope{kube::kPods, maker_.name_space(), {.labels = maker_.Selector(), .fields = {}}},
      timing_, std::move(calls));
  follower_ = std::jthread([this](const std::stop_token& stop) { informer_->Run(stop); });
  retrier_ = std::jthread([this](const std::stop_token& stop) { Retry(stop); });
}

KubernetesBackend::~KubernetesBackend() {
  follower_.request_stop();
  retrier_.request_stop();
  follower_.join();
  retrier_.join();
}

Status KubernetesBackend::Launch(const job::ReplicaSpec& spec) {
  {
    const MutexLock lock(mutex_);
    const auto [place, is_new] = replicas_.try_emplace(spec.name);
    if (!is_new) return Ok();
    place->second.last = {.name = spec.name, .kind = Kind::kPending};
  }
  Status created = Create(spec);
  const MutexLock lock(mutex_);
  if (created.ok()) {
    Replica& replica = replicas_[spec.name];
    if (!replica.seen && replica.last.kind == Kind::kPending) {
      replica.unseen_since = timing_.clock.Now();
    }
    return Ok();
  }
  if (!MayPass(created)) {
    replicas_.erase(spec.name);
    return created;
  }
  Replica& replica = replicas_[spec.name];
  replica.unborn = spec;
  Tell(replica, {.name = spec.name, .kind = Kind::kPending, .reason = created.message()});
  return Ok();
}

Status KubernetesBackend::Create(const job::ReplicaSpec& spec) {
  if (maker_.HasService(spec.role)) EDL_RETURN_IF_ERROR(PointServiceAt(spec));
  Status created = client_.Create(kube::kPods, maker_.ReplicaPod(spec, options_.master)).status();
  if (created.code() != Code::kAlreadyExists) return created;
  const Result<kube::Object> there = client_.Get(kube::kPods, KeyOf(spec.name));
  if (there.ok() && IsOwnedBy(*there, options_.master.uid)) return Ok();
  if (!there.ok() && there.status().code() != Code::kNotFound) return there.status();
  return Unavailable("a pod {} of an earlier job is still there; it is awaited to go", spec.name);
}

Status KubernetesBackend::PointServiceAt(const job::ReplicaSpec& spec) {
  const kube::Object service = maker_.SlotService(spec, options_.master);
  Status created = client_.Create(kube::kServices, service).status();
  if (created.code() != Code::kAlreadyExists) return created;
  const nlohmann::json patch = {
      {"metadata", {{"ownerReferences", service.fields()["metadata"]["ownerReferences"]}}},
      {"spec", {{"selector", service.fields()["spec"]["selector"]}}}};
  return client_.Patch(kube::kServices, service.key(), patch).status();
}

void KubernetesBackend::Retry(const std::stop_token& stop) {
  while (timing_.wait(options_.try_again_after, stop)) {
    TryUnbornAgain(stop);
    LookForUnseen(stop);
  }
}

void KubernetesBackend::TryUnbornAgain(const std::stop_token& stop) {
  std::vector<job::ReplicaSpec> unborn;
  {
    const MutexLock lock(mutex_);
    for (const auto& [name, replica] : replicas_) {
      if (replica.unborn.has_value()) unborn.push_back(*replica.unborn);
    }
  }
  for (const job::ReplicaSpec& spec : unborn) {
    if (stop.stop_requested()) return;
    const Status created = Create(spec);
    const MutexLock lock(mutex_);
    Replica& replica = replicas_[spec.name];
    if (!replica.unborn.has_value()) continue;  // stopped meanwhile
    if (created.ok()) {
      replica.unborn.reset();
      replica.unseen_since = timing_.clock.Now();
    } else if (!MayPass(created)) {
      TellExit(spec.name, replica,
               {.kind = job::ExitCause::Kind::kNotLaunched,
                .message = "could not be launched: " + created.message()});
    } else if (replica.last.reason != created.message()) {
      Tell(replica, {.name = spec.name, .kind = Kind::kPending, .reason = created.message()});
    }
  }
}

void KubernetesBackend::LookForUnseen(const std::stop_token& stop) {
  std::vector<std::string> unseen;
  {
    const MutexLock lock(mutex_);
    for (const auto& [name, replica] : replicas_) {
      if (replica.unseen_since.has_value() &&
          timing_.clock.Now() - *replica.unseen_since >= options_.look_after) {
        unseen.push_back(name);
      }
    }
  }
  for (const std::string& name : unseen) {
    if (stop.stop_requested()) return;
    if (client_.Get(kube::kPods, KeyOf(name)).status().code() != Code::kNotFound) continue;
    const MutexLock lock(mutex_);
    Replica& replica = replicas_[name];
    if (!replica.unseen_since.has_value()) continue;
    TellExit(name, replica,
             {.kind = job::ExitCause::Kind::kKilled, .message = "its pod was deleted"});
  }
}

Status KubernetesBackend::Stop(const std::string& name, std::chrono::milliseconds grace) {
  {
    const MutexLock lock(mutex_);
    const auto found = replicas_.find(name);
    if (found == replicas_.end() || found->second.last.kind == Kind::kExited) return Ok();
    if (found->second.unborn.has_value()) {
      TellExit(name, found->second,
               {.kind = job::ExitCause::Kind::kKilled, .message = "stopped before it ran"});
      return Ok();
    }
  }
  // A grace of 0 would forget the pod while its container still runs.
  const auto seconds =
      std::max(std::chrono::ceil<std::chrono::seconds>(grace), std::chrono::seconds(1));
  return client_.Delete(kube::kPods, KeyOf(name), {.grace = seconds});
}

void KubernetesBackend::Watch(std::function<void(const job::ReplicaEvent&)> on_event) {
  const MutexLock lock(mutex_);
  std::vector<job::ReplicaEvent> first;
  for (const auto& [name, replica] : replicas_) {
    if (!replica.acknowledged) first.push_back(replica.last);
  }
  if (synced_) first.push_back({.kind = Kind::kSynced});
  teller_.Watch(std::move(on_event), std::move(first));
}

Status KubernetesBackend::Acknowledge(const std::string& name) {
  const MutexLock lock(mutex_);
  const auto found = replicas_.find(name);
  if (found != replicas_.end() && found->second.last.kind == Kind::kExited) {
    found->second.acknowledged = true;
  }
  return Ok();
}

Result<LogPiece> KubernetesBackend::Logs(const std::string& name, int64_t offset, int64_t at_most) {
  const MutexLock lock(log_mutex_);
  return logs_[name].Read(offset, at_most, [&](const std::string& since) {
    return client_.Log(KeyOf(name), {.container = name, .since_time = since, .timestamps = true});
  });
}

Result<std::string> KubernetesBackend::AddressOf(job::Role role, int index) {
  return maker_.AddressOf(role, index);
}

void KubernetesBackend::Tell(Replica& replica, job::ReplicaEvent event) {
  replica.last = event;
  teller_.Tell(std::move(event));
}

void KubernetesBackend::TellExit(const std::string& name, Replica& replica, job::ExitCause cause) {
  replica.unborn.reset();
  replica.unseen_since.reset();
  Tell(replica, {.name = name, .kind = Kind::kExited, .cause = std::move(cause)});
}

std::optional<job::Role> KubernetesBackend::RoleOf(const kube::Object& pod) const {
  // Pods of an earlier job of this name go with their own master.
  if (!IsOwnedBy(pod, options_.master.uid)) return std::nullopt;
  const std::optional<std::string> name = pod.label(std::string(kRoleLabel));
  return name.has_value() ? job::RoleFromName(*name) : std::nullopt;
}

void KubernetesBackend::OnPod(const kube::Object& pod) {
  if (pod.uid() == options_.master.uid) {
    OnMasterPod(pod);
    return;
  }
  const std::optional<job::Role> role = RoleOf(pod);
  if (!role.has_value()) return;
  const std::string name = pod.name();
  const kube::PodState state = kube::PodStateOf(pod);
  const PodLife life = LifeOf(state, *role, name, options_.restart);
  {
    const MutexLock lock(mutex_);
    Replica& replica = replicas_[name];
    replica.seen = true;
    replica.unseen_since.reset();
    if (replica.last.kind == Kind::kExited) return;  // the rest of its way out
    replica.unborn.reset();
    const bool runs = life.kind == Kind::kRunning;
    if ((runs || (life.kind == Kind::kExited && life.started)) && !replica.told_running) {
      replica.told_running = true;
      Tell(replica, {.name = name, .kind = Kind::kRunning, .host = state.ip});
    }
    if (life.kind == Kind::kExited) {
      TellExit(name, replica, life.cause);
    } else if (life.kind == Kind::kPending &&
               (replica.last.name.empty() || replica.last.reason != life.reason)) {
      Tell(replica, {.name = name, .kind = Kind::kPending, .reason = life.reason});
    }
  }
  if (!life.node_lost) return;
  // Should the node come back, what runs on it is not the replica any more.
  const Status gone = client_.Delete(kube::kPods, KeyOf(name), {.uid = pod.uid()});
  if (!gone.ok()) LOG_WARNING("{}", gone.message());
}

void KubernetesBackend::WatchMaster(std::function<void(const kube::Object&)> on_pod) {
  std::optional<kube::Object> known;
  {
    const MutexLock lock(mutex_);
    known = master_pod_;
    on_master_pod_ = on_pod;
  }
  if (known.has_value()) on_pod(*known);
}

void KubernetesBackend::OnMasterPod(const kube::Object& pod) {
  std::function<void(const kube::Object&)> on_pod;
  {
    const MutexLock lock(mutex_);
    master_pod_ = pod;
    on_pod = on_master_pod_;
  }
  if (on_pod) on_pod(pod);
}

void KubernetesBackend::OnPodGone(const kube::Object& pod) {
  if (!RoleOf(pod).has_value()) return;
  const std::string name = pod.name();
  const MutexLock lock(mutex_);
  Replica& replica = replicas_[name];
  if (replica.last.kind == Kind::kExited) return;
  TellExit(name, replica, CauseOfDeletion(kube::PodStateOf(pod), name));
}

void KubernetesBackend::OnSynced() {
  const MutexLock lock(mutex_);
  synced_ = true;
  teller_.Tell({.kind = Kind::kSynced});
}

}  // namespace edl::backend::kubernetes
