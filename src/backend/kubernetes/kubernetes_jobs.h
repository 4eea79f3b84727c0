#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/cluster_jobs.h"
#include "backend/kubernetes/pod_maker.h"
#include "kube/client.h"
#include "kube/connection.h"

namespace edl::backend::kubernetes {

// Annotations of the master's pod with which users send requests to the master.
inline constexpr std::string_view kStopAnnotation = "elasticdl.org/stop";  // the reason
inline constexpr std::string_view kNumWorkersAnnotation = "elasticdl.org/num-workers";
// Annotation of the status ConfigMap: why the pod of the master was terminated. It outlives the
// pod.
inline constexpr std::string_view kInterruptedAnnotation = "elasticdl.org/interrupted";
// The key of the published status, in a ConfigMap with the name of the master.
inline constexpr std::string_view kStatusKey = "status.json";

// The jobs of one namespace. A job consists of a ConfigMap (its published status), a Secret (its
// job file and token) and the pod of its master, which owns the rest. The first two outlive the
// pod, so that an ended job can be inspected and an interrupted one resumed.
//
// Thread-safe.
class KubernetesJobs final : public ClusterJobs {
 public:
  KubernetesJobs(std::unique_ptr<kube::Connection> connection, const kube::Timing& timing,
                 std::string ns);

  std::string Where() const override;
  std::vector<Finding> Check(const Submission& submission, Depth depth) override;
  Status Submit(const Submission& submission) override;
  Status Resume(const Submission& submission) override;
  std::string Manifests(const Submission& submission) const override;
  Templates MakeTemplates(const Submission& submission) const override;
  Result<std::string> SpecOf(const std::string& job) override;
  Result<ClusterJob> Find(const std::string& job) override;
  Result<std::vector<ClusterJob>> List() override;
  Status Stop(const std::string& job, const std::string& reason) override;
  Status Scale(const std::string& job, int num_workers) override;
  Status Delete(const std::string& job) override;
  Result<int> CountRunningPods(const std::string& job) override;
  Result<std::vector<std::string>> Pods(const std::string& job) override;
  Status ReadLog(const std::string& pod, LogMode mode, const OnText& on_text) override;
  Result<std::vector<ClusterEvent>> Events(const std::string& job) override;

 private:
  PodMaker MakerOf(const Submission& submission) const;
  // Returns the submission with the service account that the master will use.
  Submission WithAccount(Submission submission);
  kube::Object StatusMap(const Submission& submission) const;
  kube::ObjectKey MasterKey(const std::string& job) const;
  struct Made {
    kube::Resource resource;
    kube::Object object;
  };
  enum class Which { kRunning, kAll };

  Status LaunchMaster(const PodMaker& maker);
  // Deletes the objects that this submission created, and nothing else.
  void Undo(std::vector<Made> made);
  // Deletes the pods of the replicas of a job, whichever master owns them.
  Status DeletePodsOf(const std::string& job, Which which);
  // Waits until pod and service of the previous master are deleted.
  Status AwaitDeletion(const kube::ObjectKey& master);
  Status Annotate(const std::string& job, std::string_view name, const std::string& value);
  // Stops a job whose master does not run yet and therefore reads no annotations.
  Status StopPendingMaster(const std::string& job, const kube::Object& pod,
                           const std::string& reason);

  const std::unique_ptr<kube::Connection> connection_;
  const kube::Timing timing_;
  const std::string ns_;
  kube::Client client_;
};

}  // namespace edl::backend::kubernetes
