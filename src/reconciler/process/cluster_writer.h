#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "reconciler/pod_group.h"
#include "reconciler/process/job_cache.h"
#include "reconciler/reconcile.h"

#include "base/clock.h"
#include "base/status.h"
#include "kube/client.h"
#include "kube/event_recorder.h"

namespace edl::reconciler {

// Carries out the actions of a plan, several at a time, and records in the cache what it wrote.
//
// Blocks. Thread-safe.
class ClusterWriter {
 public:
  struct Options {
    // How many writes of one plan are sent at the same time. Their rate is limited by the client.
    int parallel_writes = 8;
    kube::Resource pod_groups = kPluginPodGroups;  // of the scheduler in use
    // Checked before each write: only the holder of the lease may write.
    std::function<bool()> may_write = [] { return true; };
  };

  // `logs` reads logs, which the API server gets from nodes that may be unreachable: it should have
  // a short timeout. The events about each write go to `recorder`. All arguments outlive this.
  ClusterWriter(kube::Client& client, kube::Client& logs, JobCache& cache,
                kube::EventRecorder& recorder, Options options);

  // Writes the status of a job. Aborted: the job has changed in the meantime; reconcile it again.
  // FailedPrecondition: the server has dropped what must be remembered, because it has another CRD.
  Status WriteStatus(const kube::Object& job, const nlohmann::json& status,
                     const std::stop_token& stop);

  // Carries out the actions in batches. After a failure it finishes the batch, starts no further
  // one, and returns the first error. `job` is the object that the events are about.
  Status Run(const kube::Object& job, const std::vector<Action>& actions,
             const std::stop_token& stop);

  // The data-shard service of a job as it is now.
  Result<ShardService> ReadShards(const kube::Object& job, const std::stop_token& stop);

  // The last lines of a log, on one line each. Empty: there is no log, or it cannot be read.
  std::string LastLogLines(const std::string& ns, const LogSource& source,
                           const std::stop_token& stop);

 private:
  // Ok: the server has this status although the call to write it ended with `error`.
  Status ConfirmStatus(const kube::Object& job, const JobStatus& sent, const Status& error,
                       const std::stop_token& stop);
  const kube::Resource& ResourceOf(const Action& action) const;
  Status Carry(const kube::Object& job, const Action& action, const std::stop_token& stop);
  Status CreateObject(const kube::Object& job, const Action& action, const std::stop_token& stop);
  Status DeleteObject(const kube::Object& job, const Action& action, const std::stop_token& stop);
  // Reads the job from the API server. Aborted: it is gone or being deleted, so that an object that
  // was left to others (`kubectl delete --cascade=orphan`) is not adopted by a job that the cache
  // still has.
  Status CheckMayAdopt(const kube::Object& job, const std::stop_token& stop);
  Status ChangeOwner(const kube::Object& job, const Action& action, const std::stop_token& stop);
  Status UpdatePodGroup(const Action& action, const std::stop_token& stop);
  // This process has written the whole object.
  void Remember(const Action& action, const kube::Object& written);
  // The answer has what others wrote, too, so the plan may be outdated.
  void Found(const Action& action, const kube::Object& object);
  // The object exists. Ok: the job owns it, so an earlier call has created it.
  Status ClaimExisting(const kube::Object& job, const Action& action, const Status& error,
                       const std::stop_token& stop);

  kube::Client& client_;
  kube::Client& logs_;
  JobCache& cache_;
  kube::EventRecorder& recorder_;
  const Options options_;
};

}  // namespace edl::reconciler
