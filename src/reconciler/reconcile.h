#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reconciler/replica_objects.h"
#include "reconciler/replica_pod.h"
#include "reconciler/shard_service.h"
#include "reconciler/tfjob.h"

#include "base/clock.h"
#include "kube/event_recorder.h"
#include "kube/object.h"

namespace edl::reconciler {

// The service of a replica.
struct ReplicaService {
  std::string name;
  std::string uid;
  Slot slot;
  std::string job;    // the job that its label names
  std::string owner;  // the uid of its controller; empty: none
  bool deleting = false;

  bool operator==(const ReplicaService&) const = default;
};

// nullopt: the labels do not name a role and an index.
std::optional<ReplicaService> ReadService(const kube::Object& service);

// A job and what may belong to it, as it is in the cluster: the pods and services that the job
// controls, and those that have its label. Reconcile decides which of them are the job's own.
struct Observed {
  TFJob job;
  std::vector<ReplicaPod> pods;
  std::vector<ReplicaService> services;
  std::optional<kube::Object> pod_group;  // only with gang scheduling
  std::optional<ShardService> shards;     // only of a job with data shards; nullopt: not known
};

// The settings of the operator that decisions depend on.
struct Settings {
  PodSettings pods;
  std::map<std::string, int64_t> priorities;  // of PriorityClasses, for gang scheduling
  ShardSettings shards;
};

// A write that brings the cluster closer to what the job wants. Each is idempotent: creating an
// object that exists and deleting one that is gone change nothing.
struct Action {
  enum class Kind {
    kCreatePod,
    kDeletePod,
    kCreateService,
    kDeleteService,
    kAdoptPod,  // make the job the controller of an object that has none
    kAdoptService,
    kReleasePod,  // the opposite, for an object whose labels were changed
    kReleaseService,
    kCreatePodGroup,
    kUpdatePodGroup,
    kDeletePodGroup,
    kCreateSecret,
    kDeleteJob,
  };
  Kind kind = Kind::kCreatePod;
  kube::Object object;  // to create or to update
  std::string name;     // to delete, to adopt or to release
  std::string uid;      // only the object with this uid
  bool force = false;   // to delete: do not wait for the node
  bool first = false;   // the actions after it begin only when it was successful
};

// An event about the job. It is recorded after the status was written. One with a subject describes
// a state and not a change, so each pass has it: it is recorded once for each subject.
struct JobEvent {
  kube::EventType type = kube::EventType::kNormal;
  std::string reason;
  std::string message;
  std::string subject;  // the uid of a pod or of the job; empty: a change
};

// What happened to the job in this pass, for metrics.
struct Milestones {
  bool created = false;
  bool restarted = false;
  bool succeeded = false;
  bool failed = false;
};

// What to do for a job: write the status if it changed, then carry out the actions.
struct Plan {
  JobStatus status;
  std::vector<Action> actions;
  std::vector<JobEvent> events;
  // When to reconcile again if nothing changes before: a deadline, a time to live, a retry.
  std::optional<WallTime> again_at;
  // The log of a pod whose failure made the job fail or restart.
  LogSource failed_log;
  Milestones milestones;

  // Moves `again_at` to `time` if that is earlier.
  void ReconcileAgainAt(WallTime time) {
    if (!again_at || time < *again_at) again_at = time;
  }
};

// Computes what to do for a job. It has no side effects and no memory: everything that it must
// remember is in the status of the job, which is written before the actions are carried out. Only
// the creation of pods and services may come before that. So an operator that dies at any point is
// followed by one that continues.
//
// REQUIRES: the job is managed by us and is not being deleted.
Plan Reconcile(const Observed& observed, const Settings& settings, WallTime now);

// The plan for a job that is being deleted: its pods that are deleted with it, but cannot go away
// because their node is lost, are deleted by force. A deletion in the foreground waits for them.
Plan ReconcileDeletion(const Observed& observed, WallTime now);

// The plan for a job that ParseTFJob rejects, as ParseRejected returns it: it fails, and its pods
// are cleaned up as those of any job that has ended.
Plan RejectInvalid(const Observed& observed, const std::string& why, WallTime now);

}  // namespace edl::reconciler
