#include "backend/kubernetes/kubernetes_backend.h"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <set>
#include <utility>

#include "base/backoff.h"
#include "base/log.h"
#include "base/retry.h"
#include "job/names.h"
#include "kube/api_status.h"
#include "kube/pod.h"
#include "kube/resource.h"

namespace edl::backend::kubernetes {
namespace {

using Kind = job::ReplicaEvent::Kind;

// Fast enough to launch a thousand workers within seconds. The backend itself retries failed calls,
// and reports what it waits for.
const kube::ClientOptions kCalls{.calls_per_second = 200,
                                 .burst = 400,
                                 .timeout = std::chrono::milliseconds(10'000),
                                 .tries = 3,
                                 .retry_timeout = std::chrono::milliseconds(5'000)};

// For calls that block other work.
const kube::ClientOptions kShortTimeout{.timeout = std::chrono::milliseconds(3'000), .tries = 1};
constexpr BackoffLimits kRetry{.first = std::chrono::seconds(1),
                               .longest = std::chrono::seconds(30)};
// From this number of pods on, one call deletes all of them.
constexpr size_t kBulkDeletion = 32;

// Whether an administrator or the cluster may remove the cause of an error: an unavailable server,
// an exceeded quota, a missing role or credential.
bool MaySucceedLater(const Status& status) {
  if (status.code() == Code::kPermissionDenied) return kube::IsMissingRole(status);
  return IsTransientOrDenied(status);
}

bool IsOwnedBy(const kube::Object& object, const std::string& uid) {
  const std::vector<kube::OwnerReference> owners = object.owners();
  return std::any_of(owners.begin(), owners.end(),
                     [&](const kube::OwnerReference& owner) { return owner.uid == uid; });
}

// The number in a label that PodMaker wrote; 0 if the label is missing.
int64_t NumberOf(const kube::Object& pod, std::string_view label) {
  const std::string text = pod.label(std::string(label)).value_or("");
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

KubernetesBackend::KubernetesBackend(kube::Connection& connection, const kube::Timing& timing,
                                     PodMaker maker, Options options)
    : timing_(timing),
      client_(connection, timing, kCalls),
      short_timeout_client_(connection, timing, kShortTimeout),
      maker_(std::move(maker)),
      options_(std::move(options)) {
  kube::InformerCallbacks callbacks;
  callbacks.on_added = [this](const kube::Object& pod) { OnPod(pod); };
  callbacks.on_updated = [this](const kube::Object&, const kube::Object& pod) { OnPod(pod); };
  callbacks.on_deleted = [this](const kube::Object& pod) { OnPodDeleted(pod); };
  callbacks.on_synced = [this] { OnSynced(); };
  callbacks.on_error = [](const Status& error) {
    LOG_WARNING("cannot watch the pods of the job: {}; retrying", error.message());
  };
  informer_ = std::make_unique<kube::Informer>(
      connection,
      kube::Scope{kube::kPods, maker_.ns(), {.labels = maker_.Selector(), .fields = {}}}, timing_,
      std::move(callbacks));
  follower_ = std::jthread([this](const std::stop_token& stop) { informer_->Run(stop); });
  retrier_ = std::jthread([this](const std::stop_token& stop) { Retry(stop); });
  cleaner_ = std::jthread([this](const std::stop_token& stop) { Clean(stop); });
}

KubernetesBackend::~KubernetesBackend() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.NotifyAll();
  cleaner_.request_stop();
  cleaner_.join();
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
    Replica& replica = place->second;
    replica.last = {.name = spec.name, .kind = Kind::kPending};
    replica.role = spec.role;
    replica.index = spec.index;
    replica.id = spec.id;
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
  Replica& replica = replicas_[spec.name];
  if (replica.unwanted) {
    // If the pod was created after all, it is deleted when the informer reports it.
    NotifyExit(spec.name, replica,
               {.kind = job::ExitCause::Kind::kKilled, .message = "stopped before it ran"});
    return Ok();
  }
  if (!MaySucceedLater(created)) {
    replicas_.erase(spec.name);
    return created;
  }
  replica.pending_create = spec;
  replica.create_wait = options_.retry_every;
  replica.create_at = timing_.clock.Now() + replica.create_wait;
  Notify(replica, {.name = spec.name, .kind = Kind::kPending, .reason = created.message()});
  return Ok();
}

Status KubernetesBackend::Create(const job::ReplicaSpec& spec) {
  if (maker_.HasService(spec.role)) EDL_RETURN_IF_ERROR(PointServiceAt(spec));
  Status created = client_.Create(kube::kPods, maker_.ReplicaPod(spec, options_.master)).status();
  if (created.code() != Code::kAlreadyExists) return created;
  const Result<kube::Object> there = client_.Get(kube::kPods, KeyOf(spec.name));
  if (there.ok() && IsOwnedBy(*there, options_.master.uid)) return Ok();
  if (!there.ok() && there.status().code() != Code::kNotFound) return there.status();
  return Aborted("pod {} of an earlier job still exists; waiting for its deletion", spec.name);
}

Status KubernetesBackend::PointServiceAt(const job::ReplicaSpec& spec) {
  const kube::Object service = maker_.SlotService(spec, options_.master);
  Status created = CreateService(service);
  if (created.code() != Code::kAlreadyExists) return created;
  const nlohmann::json patch = {
      {"metadata", {{"ownerReferences", service.fields()["metadata"]["ownerReferences"]}}},
      {"spec", {{"selector", service.fields()["spec"]["selector"]}}}};
  return client_.Patch(kube::kServices, service.key(), patch).status();
}

Status KubernetesBackend::CreateService(const kube::Object& service) {
  return client_.Create(kube::kServices, service).status();
}

void KubernetesBackend::Retry(const std::stop_token& stop) {
  Time services_at = timing_.clock.Now() + options_.services_every;
  while (timing_.wait(options_.retry_every, stop)) {
    RetryCreates(stop);
    LookUpUnseen(stop);
    if (timing_.clock.Now() < services_at) continue;
    RecreateServices(stop);
    services_at = timing_.clock.Now() + options_.services_every;
  }
}

void KubernetesBackend::RecreateServices(const std::stop_token& stop) {
  std::vector<kube::Object> wanted = {maker_.MasterService(options_.master)};
  {
    const MutexLock lock(mutex_);
    for (const auto& [name, replica] : replicas_) {
      const bool lives = replica.pod.has_value() && replica.last.kind != Kind::kExited;
      if (!lives || replica.unwanted || !maker_.HasService(replica.role)) continue;
      wanted.push_back(maker_.SlotService(
          {.name = name, .role = replica.role, .index = replica.index, .id = replica.id},
          options_.master));
    }
  }
  // Without permission to list services, creates each again: the call fails if the service exists.
  std::set<std::string> there;
  const Result<kube::ObjectList> listed =
      client_.List(kube::kServices, maker_.ns(), {.labels = maker_.Selector(), .fields = {}}, stop);
  if (!listed.ok() && listed.status().code() != Code::kPermissionDenied) return;
  if (listed.ok()) {
    for (const kube::Object& service : listed->items) there.insert(service.name());
  }
  for (const kube::Object& service : wanted) {
    if (stop.stop_requested()) return;
    if (there.contains(service.name())) continue;
    const Status created = CreateService(service);
    if (created.ok()) LOG_WARNING("service {} was deleted; it was created again", service.name());
    if (!created.ok() && created.code() != Code::kAlreadyExists) {
      LOG_WARNING("service {} is missing and cannot be created: {}", service.name(),
                  created.message());
      if (IsUnreachable(created)) return;
    }
  }
}

void KubernetesBackend::RetryCreates(const std::stop_token& stop) {
  std::vector<job::ReplicaSpec> pending_create;
  {
    const MutexLock lock(mutex_);
    const Time now = timing_.clock.Now();
    for (const auto& [name, replica] : replicas_) {
      if (replica.pending_create.has_value() && replica.create_at <= now) {
        pending_create.push_back(*replica.pending_create);
      }
    }
  }
  for (const job::ReplicaSpec& spec : pending_create) {
    if (stop.stop_requested()) return;
    const Status created = Create(spec);
    const MutexLock lock(mutex_);
    Replica& replica = replicas_[spec.name];
    // The replica was stopped in the meantime. If its pod was created, it is deleted when the
    // informer reports it.
    if (!replica.pending_create.has_value()) continue;
    replica.create_wait = kRetry.Following(replica.create_wait);
    replica.create_at = timing_.clock.Now() + replica.create_wait;
    if (created.ok()) {
      replica.pending_create.reset();
      replica.unseen_since = timing_.clock.Now();
    } else if (!MaySucceedLater(created)) {
      NotifyExit(spec.name, replica,
                 {.kind = job::ExitCause::Kind::kNotLaunched,
                  .message = "could not be launched: " + created.message()});
    } else if (replica.last.reason != created.message()) {
      Notify(replica, {.name = spec.name, .kind = Kind::kPending, .reason = created.message()});
    }
    if (IsUnreachable(created)) return;
  }
}

void KubernetesBackend::LookUpUnseen(const std::stop_token& stop) {
  std::vector<std::string> unseen;
  {
    const MutexLock lock(mutex_);
    for (const auto& [name, replica] : replicas_) {
      if (replica.unseen_since.has_value() &&
          timing_.clock.Now() - *replica.unseen_since >= options_.lookup_after) {
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
    NotifyExit(name, replica,
               {.kind = job::ExitCause::Kind::kKilled, .message = "its pod was deleted"});
  }
}

Status KubernetesBackend::Stop(const std::string& name, std::chrono::milliseconds grace) {
  const MutexLock lock(mutex_);
  // Before the first list is complete, a pod of an unknown name may still appear.
  if (!replicas_.contains(name) && synced_) return Ok();
  Replica& replica = replicas_[name];
  if (replica.last.kind == Kind::kExited) return Ok();
  replica.unwanted = true;
  // With a grace period of 0 the API server would delete the pod object while its container still
  // runs.
  replica.grace = std::max(std::chrono::ceil<std::chrono::seconds>(grace), std::chrono::seconds(1));
  if (replica.pending_create.has_value()) {
    NotifyExit(name, replica,
               {.kind = job::ExitCause::Kind::kKilled, .message = "stopped before it ran"});
  }
  changed_.NotifyAll();
  return Ok();
}

bool KubernetesBackend::NeedsDeletion(const Replica& replica) const {
  if (!replica.pod.has_value() || replica.pod->terminal || replica.pod->deleting) return false;
  return replica.unwanted || replica.last.kind == Kind::kExited;
}

KubernetesBackend::Deletions KubernetesBackend::TakeDeletions() {
  const Time now = timing_.clock.Now();
  Deletions due;
  for (auto& [name, replica] : replicas_) {
    const bool has_ended = replica.last.kind == Kind::kExited;
    const bool is_over = has_ended && (!replica.pod.has_value() || replica.pod->terminal);
    if (!replica.unwanted && !is_over) due.all = false;
    if (!NeedsDeletion(replica) || now < replica.delete_at) continue;
    due.pods.push_back({name, replica.pod->uid, replica.grace});
    replica.delete_wait = kRetry.Following(replica.delete_wait);
    replica.delete_at = now + replica.delete_wait;
  }
  return due;
}

std::optional<Time> KubernetesBackend::NextDeletion() const {
  std::optional<Time> next;
  for (const auto& [name, replica] : replicas_) {
    if (!NeedsDeletion(replica)) continue;
    next = next.has_value() ? std::min(*next, replica.delete_at) : replica.delete_at;
  }
  return next;
}

void KubernetesBackend::Clean(const std::stop_token& stop) {
  while (true) {
    Deletions due;
    {
      const MutexLock lock(mutex_);
      for (due = TakeDeletions(); due.pods.empty() && !ending_; due = TakeDeletions()) {
        const std::optional<Time> next = NextDeletion();
        if (next.has_value()) {
          // A condition variable waits in real time, whatever clock was injected.
          changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() +
                                         std::max(*next - timing_.clock.Now(), Duration::zero()));
        } else {
          changed_.Wait(mutex_);
        }
      }
      if (ending_) return;
    }
    DeletePods(due, stop);
  }
}

void KubernetesBackend::DeletePods(const Deletions& deletions, const std::stop_token& stop) {
  if (deletions.all && deletions.pods.size() >= kBulkDeletion) {
    std::chrono::seconds grace{1};
    for (const PodToDelete& pod : deletions.pods) grace = std::max(grace, pod.grace);
    const Status deleted = DeleteAllPods(grace, stop);
    if (deleted.ok() || IsUnreachable(deleted)) return;
    LOG_WARNING("{}; deleting the pods one by one", deleted.message());
  }
  for (const PodToDelete& pod : deletions.pods) {
    if (stop.stop_requested()) return;
    const Status deleted =
        client_.Delete(kube::kPods, KeyOf(pod.name), {.grace = pod.grace, .uid = pod.uid}, stop);
    if (deleted.ok()) continue;
    LOG_WARNING("{}; retrying", deleted.message());
    if (IsUnreachable(deleted)) return;
  }
}

Status KubernetesBackend::DeleteAllPods(std::chrono::seconds grace, const std::stop_token& stop) {
  return client_.DeleteMany(kube::kPods, maker_.ns(), maker_.RunningReplicas(), {.grace = grace},
                            stop);
}

std::vector<std::string> KubernetesBackend::EndAll(std::chrono::milliseconds timeout) {
  // In real time, because the condition variable waits in it.
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const MutexLock lock(mutex_);
  while (true) {
    std::vector<std::string> left;
    for (auto& [name, replica] : replicas_) {
      replica.unwanted = true;
      if (replica.pending_create.has_value()) {
        NotifyExit(name, replica,
                   {.kind = job::ExitCause::Kind::kKilled, .message = "stopped before it ran"});
      }
      // A created pod that the informer has not reported yet will appear.
      const bool will_appear = replica.unseen_since.has_value();
      if (NeedsDeletion(replica) || will_appear) left.push_back(name);
    }
    if (left.empty()) return {};
    changed_.NotifyAll();
    if (!changed_.WaitUntil(mutex_, deadline)) return left;
  }
}

void KubernetesBackend::Watch(std::function<void(const job::ReplicaEvent&)> on_event) {
  const MutexLock lock(mutex_);
  std::vector<job::ReplicaEvent> first;
  for (const auto& [name, replica] : replicas_) {
    if (!replica.acknowledged && !replica.last.name.empty()) first.push_back(replica.last);
  }
  if (synced_) first.push_back({.kind = Kind::kSynced});
  dispatcher_.Watch(std::move(on_event), std::move(first));
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

Result<std::string> KubernetesBackend::Tail(const std::string& name, size_t max_lines,
                                            int64_t max_bytes) {
  // The server counts the byte limit from the first of these lines, so a long line may hide the
  // last one.
  constexpr int64_t kLongLines = 16;
  EDL_ASSIGN_OR_RETURN(
      std::string text,
      short_timeout_client_.Log(KeyOf(name), {.container = name,
                                              .tail_lines = static_cast<int64_t>(max_lines),
                                              .limit_bytes = kLongLines * max_bytes}));
  if (std::cmp_greater(text.size(), max_bytes)) {
    text.erase(0, text.size() - static_cast<size_t>(max_bytes));
  }
  return text;
}

Result<std::string> KubernetesBackend::AddressOf(job::Role role, int index) {
  return maker_.AddressOf(role, index);
}

void KubernetesBackend::Notify(Replica& replica, job::ReplicaEvent event) {
  replica.last = event;
  dispatcher_.Notify(std::move(event));
}

void KubernetesBackend::NotifyExit(const std::string& name, Replica& replica,
                                   job::ExitCause cause) {
  replica.pending_create.reset();
  replica.unseen_since.reset();
  if (!replica.unwanted) {
    // The phase of the pod follows its container after a second, and sidecars may need longer.
    replica.delete_at = timing_.clock.Now() + options_.sidecar_grace;
  }
  Notify(replica, {.name = name, .kind = Kind::kExited, .cause = std::move(cause)});
  changed_.NotifyAll();
}

std::optional<job::Role> KubernetesBackend::RoleOf(const kube::Object& pod) const {
  // Pods of an earlier job of this name are deleted with their own master.
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
    replica.role = *role;
    replica.index = static_cast<int>(NumberOf(pod, kIndexLabel));
    replica.id = NumberOf(pod, kIdLabel);
    replica.pod = Pod{.uid = pod.uid(), .terminal = state.terminal(), .deleting = state.deleting};
    replica.unseen_since.reset();
    changed_.NotifyAll();
    if (replica.last.kind == Kind::kExited) return;  // the exit was reported already
    replica.pending_create.reset();
    const bool runs = life.kind == Kind::kRunning;
    const bool news = !replica.reported_running || replica.last.node_lost != life.node_lost;
    if ((runs && news) ||
        (life.kind == Kind::kExited && life.started && !replica.reported_running)) {
      replica.reported_running = true;
      Notify(replica,
             {.name = name, .kind = Kind::kRunning, .host = state.ip, .node_lost = life.node_lost});
    }
    if (life.kind == Kind::kExited) {
      NotifyExit(name, replica, life.cause);
    } else if (life.kind == Kind::kPending &&
               (replica.last.name.empty() || replica.last.reason != life.reason)) {
      Notify(replica, {.name = name, .kind = Kind::kPending, .reason = life.reason});
    }
  }
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

void KubernetesBackend::OnPodDeleted(const kube::Object& pod) {
  if (!RoleOf(pod).has_value()) return;
  const std::string name = pod.name();
  const MutexLock lock(mutex_);
  Replica& replica = replicas_[name];
  replica.pod.reset();
  changed_.NotifyAll();
  if (replica.last.kind == Kind::kExited) return;
  NotifyExit(name, replica, CauseOfDeletion(kube::PodStateOf(pod), name));
}

void KubernetesBackend::OnSynced() {
  const MutexLock lock(mutex_);
  synced_ = true;
  dispatcher_.Notify({.kind = Kind::kSynced});
}

}  // namespace edl::backend::kubernetes
