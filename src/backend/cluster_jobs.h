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

// A job as its cluster shows it.
struct ClusterJob {
  std::string name;
  std::string status_json;  // a job::JobView, as its master showed it last
  bool running = false;     // its master's pod is there and has not ended
  std::string trouble;      // why its master does not run, where there is more to say
};

// Something that happened to one of a job's objects, in the cluster's words.
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
  std::string spec_json;    // what the master reads: a job file
  std::string status_json;  // what is shown until it says more
};

// What a look at the cluster found about one thing that a job needs.
struct Finding {
  enum class Verdict { kOk, kMissing, kCannotTell };
  Verdict verdict = Verdict::kOk;
  std::string what;    // "priority class high"
  std::string detail;  // a clause: what is so, or is not
  std::string fix;     // not of kOk: what to do, a command where there is one; may be empty
  // kMissing: a job that is submitted now cannot train, however long it waits.
  bool blocks = false;
};
// "ok", "missing", "cannot tell".
std::string_view NameOf(Finding::Verdict verdict);

// How much of it to look for.
enum class Depth {
  kBlockers,  // what takes few calls and would block: before each submission
  kAll,
};

// Objects that a submission makes, one of each sort, for whoever adapts them to a cluster.
struct Templates {
  std::map<job::Role, nlohmann::json> pods;  // of every role
  nlohmann::json service;
};

// The jobs of one namespace of a cluster, as far as verbs use it. Calls block.
class ClusterJobs {
 public:
  // Returns false to hear no more.
  using OnText = std::function<bool(std::string_view)>;

  virtual ~ClusterJobs() = default;

  // For people: which cluster, which namespace.
  virtual std::string Where() const = 0;

  // Looks for what the job needs and changes nothing. What may not be looked at is kCannotTell; a
  // cluster that does not answer is one kMissing, and all.
  virtual std::vector<Finding> Check(const Submission& submission, Depth depth) = 0;

  // AlreadyExists: there is one of this name, running or not. All or nothing is made.
  virtual Status Submit(const Submission& submission) = 0;
  // Goes on with a job whose master's pod is gone or has ended. FailedPrecondition: it runs.
  virtual Status Resume(const Submission& submission) = 0;
  // What Submit would make, as YAML.
  virtual std::string Manifests(const Submission& submission) const = 0;
  virtual Templates MakeTemplates(const Submission& submission) const = 0;
  // The job file that it was submitted with. NotFound: no such job.
  virtual Result<std::string> SpecOf(const std::string& job) = 0;

  // NotFound: no such job.
  virtual Result<ClusterJob> Find(const std::string& job) = 0;
  virtual Result<std::vector<ClusterJob>> List() = 0;

  // Tells the job's master, which does it soon. Where no master runs, deletes the pods that it left
  // behind.
  virtual Status Stop(const std::string& job, const std::string& reason) = 0;
  // Tells the job's master, which does it soon.
  virtual Status Scale(const std::string& job, int num_workers) = 0;
  // Removes all that the cluster has of a job. Its ledger on a claim stays.
  virtual Status Delete(const std::string& job) = 0;

  // How many of the job's replicas have pods that have not ended.
  virtual Result<int> CountRunningPods(const std::string& job) = 0;
  // Names of the job's pods, the master's first.
  virtual Result<std::vector<std::string>> Pods(const std::string& job) = 0;
  // Passes a pod's output on; with `follow` until it has ended.
  virtual Status ReadLog(const std::string& pod, bool follow, const OnText& on_text) = 0;
  // Oldest first.
  virtual Result<std::vector<ClusterEvent>> Events(const std::string& job) = 0;
};

}  // namespace edl::backend
