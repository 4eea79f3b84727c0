#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "backend/cluster_options.h"
#include "base/clock.h"
#include "base/status.h"
#include "job/job_spec.h"
#include "job/role.h"

namespace edl::backend {

// A job in a cluster.
struct ClusterJob {
  std::string name;
  std::string status_json;  // the last job::JobView that its master published
  bool running = false;     // its master's pod exists and has not terminated
  std::string trouble;      // why its master does not run; may be empty
};

// A Kubernetes event about one of the job's objects.
struct ClusterEvent {
  std::string when;    // RFC 3339
  std::string type;    // "Normal", "Warning"
  std::string object;  // "Pod/iris-edljob-worker-0"
  std::string reason;
  std::string message;
  int64_t count = 1;
};

struct Submission {
  job::JobSpec job;
  backend::ClusterOptions options;
  std::string spec_json;    // the job file, which the master reads
  std::string status_json;  // the job::JobView to show until the master publishes one
};

// The result of one check of something that a job needs from the cluster.
struct Finding {
  enum class CheckResult { kOk, kMissing, kCannotTell };
  CheckResult result = CheckResult::kOk;
  std::string what;    // "priority class high"
  std::string detail;  // a clause: what was found
  std::string fix;     // unless kOk: what to do, if possible a command; may be empty
  // With kMissing: a job that is submitted now can never train, however long it waits.
  bool blocks = false;
};
// "ok", "missing", "cannot tell".
std::string_view NameOf(Finding::CheckResult result);

// How much to check.
enum class Depth {
  kBlockers,  // blocking problems that few calls can find: before each submission
  kAll,
};

// The objects that a submission creates, one of each kind, for programs that adapt them to a
// cluster (--cluster_spec).
struct Templates {
  std::map<job::Role, nlohmann::json> pods;  // one of each role
  nlohmann::json service;
};

// Whether a log ends with the current output.
enum class LogMode { kUntilNow, kFollow };

// The jobs in one namespace of a cluster, for the verbs of the command line. Calls block.
class ClusterJobs {
 public:
  // Return false to end the log.
  using OnText = std::function<bool(std::string_view)>;

  virtual ~ClusterJobs() = default;

  // Names the cluster and the namespace, for messages.
  virtual std::string Where() const = 0;

  // Checks what the job needs, and changes nothing. A check that the caller may not perform is
  // kCannotTell. If the cluster does not answer, the only finding is a kMissing.
  virtual std::vector<Finding> Check(const Submission& submission, Depth depth) = 0;

  // Creates all objects of the job, or none. AlreadyExists: there is a job of this name, running or
  // not.
  virtual Status Submit(const Submission& submission) = 0;
  // Continues a job whose master pod was deleted or has terminated. FailedPrecondition: the job is
  // running.
  virtual Status Resume(const Submission& submission) = 0;
  // The objects that Submit would create, as YAML.
  virtual std::string Manifests(const Submission& submission) const = 0;
  virtual Templates MakeTemplates(const Submission& submission) const = 0;
  // The job file with which the job was submitted. NotFound: no such job.
  virtual Result<std::string> SpecOf(const std::string& job) = 0;

  // NotFound: no such job.
  virtual Result<ClusterJob> Find(const std::string& job) = 0;
  virtual Result<std::vector<ClusterJob>> List() = 0;

  // Requests the job's master to stop the job, and returns. If no master runs, deletes the pods
  // that it left.
  virtual Status Stop(const std::string& job, const std::string& reason) = 0;
  // Requests the job's master to change the number of workers, and returns.
  virtual Status Scale(const std::string& job, int num_workers) = 0;
  // Deletes all objects of a job. A ledger on a persistent volume claim remains.
  virtual Status Delete(const std::string& job) = 0;

  // The number of replica pods of the job that have not terminated.
  virtual Result<int> CountRunningPods(const std::string& job) = 0;
  // The names of the job's pods, the master first.
  virtual Result<std::vector<std::string>> Pods(const std::string& job) = 0;
  // Passes the log of a pod to `on_text`. With kFollow, continues until the container ends.
  virtual Status ReadLog(const std::string& pod, LogMode mode, const OnText& on_text) = 0;
  // Oldest first.
  virtual Result<std::vector<ClusterEvent>> Events(const std::string& job) = 0;
};

}  // namespace edl::backend
