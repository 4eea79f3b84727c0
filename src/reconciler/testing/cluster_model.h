#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reconciler/reconcile.h"
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "kube/object.h"

namespace edl::reconciler {

// Noon (UTC) of 2023-11-15, when all tests begin.
inline constexpr WallTime kNoon{std::chrono::seconds(1'700'049'600)};
inline constexpr const char* kJobUid = "uid-of-job";

// A role whose container "tensorflow" has an image.
nlohmann::json Role(int replicas, const std::string& restart = "Never");
// A TFJob "ns/j" as the API server stores it.
nlohmann::json JobObject(nlohmann::json roles,
                         nlohmann::json run_policy = nlohmann::json::object());
// The same with defaults filled in. REQUIRES: it is valid.
TFJob ParsedJob(const nlohmann::json& object);

// "Created Running-" for [Created=True, Running=False].
std::string TextOf(const Conditions& conditions);

// A pod of job "j" with this outcome, and its service.
ReplicaPod PodOf(ReplicaType type, int index, PodOutcome outcome);
ReplicaService ServiceOf(ReplicaType type, int index);

// One TFJob and its objects in memory. Tests do what users, kubelets and schedulers do; a pass of
// the operator does the rest. Everything is stored as JSON, as in a real cluster.
//
// Confined.
class ClusterModel {
 public:
  explicit ClusterModel(nlohmann::json job) : job_(std::move(job)) {}

  Settings settings;
  // Deleted pods stay until Reap().
  bool graceful = false;
  // A status that differs only in counts is not written, as if another one was written just before.
  bool counts_wait = false;

  // One pass of the operator. It ends after this many writes, as if the operator was killed. The
  // status, if it changed, is the first or the last, as OrderOfWrites says.
  Plan Pass(size_t writes = static_cast<size_t>(-1));
  // Passes until nothing is left to do now. Returns the last one that did something.
  Plan Settle();
  void Wait(Duration duration) { now_ += duration; }
  WallTime now() const { return now_; }

  nlohmann::json& job() { return job_; }
  bool job_exists() const { return !job_.is_null(); }
  JobStatus status() const;
  std::string conditions() const { return TextOf(status().conditions); }
  bool has(const std::string& pod) const { return pods_.contains(pod); }
  kube::Object& pod(const std::string& name) { return pods_.at(name); }
  std::vector<std::string> pods() const;
  std::vector<std::string> services() const;
  // How many pods of this name were created.
  int created(const std::string& pod) const;

  // A kubelet.
  void SetPhase(const std::string& pod, const std::string& phase);
  void RunAll();
  void Exit(const std::string& pod, int code);
  void SetRestarts(const std::string& pod, int restarts);
  // A node rejects or evicts the pod: reason "Evicted".
  void FailWithReason(const std::string& pod, const std::string& reason);
  // A scheduler or the eviction API: the condition DisruptionTarget, then the deletion.
  void Disrupt(const std::string& pod, const std::string& reason);
  // A user or a garbage collector.
  void DeletePod(const std::string& pod);
  void Remove(const std::string& pod) { pods_.erase(pod); }
  void RemoveService(const std::string& service) { services_.erase(service); }
  void Reap();

 private:
  Observed Observe() const;
  void WriteStatus(const JobStatus& status, size_t& writes);
  void Apply(const Action& action);
  void Store(kube::Object object, std::map<std::string, kube::Object>& in);

  nlohmann::json job_;
  std::map<std::string, kube::Object> pods_;
  std::map<std::string, kube::Object> services_;
  std::optional<kube::Object> pod_group_;
  std::map<std::string, int> created_;
  int next_uid_ = 0;
  WallTime now_ = kNoon;
};

}  // namespace edl::reconciler
