#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/cluster_jobs.h"
#include "backend/kubernetes/pod_maker.h"
#include "kube/client.h"
#include "kube/connection.h"

namespace edl::backend::kubernetes {

// What users write to a master's pod, for its master to read.
inline constexpr std::string_view kStopAnnotation = "elasticdl.org/stop";  // why
inline constexpr std::string_view kNumWorkersAnnotation = "elasticdl.org/num-workers";
// Annotation of the status ConfigMap: why the master's pod was told to end. It outlives the pod.
inline constexpr std::string_view kInterruptedAnnotation = "elasticdl.org/interrupted";
// Where a master shows its job: the key of a ConfigMap of the master's name.
inline constexpr std::string_view kStatusKey = "status.json";

// The jobs of one namespace. A job is a ConfigMap (what its master shows), a Secret (what it is,
// and its token) and a master's pod, which owns the rest; the first two outlive the pod, so that an
// ended job can be looked at, and an interrupted one resumed.
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
  Status ReadLog(const std::string& pod, bool follow, const OnText& on_text) override;
  Result<std::vector<ClusterEvent>> Events(const std::string& job) override;

 private:
  PodMaker MakerOf(const Submission& submission) const;
  // With the service account that the master gets.
  Submission Settled(Submission submission);
  kube::Object StatusMap(const Submission& submission) const;
  kube::ObjectKey MasterKey(const std::string& job) const;
  struct Made {
    kube::Resource resource;
    kube::Object object;
  };
  enum class Which { kRunning, kAll };

  Status LaunchMaster(const PodMaker& maker);
  // Deletes what a submission made a moment ago, and nothing else.
  void Undo(std::vector<Made> made);
  // The replicas' pods of a job, whoever owns them.
  Status DeletePodsOf(const std::string& job, Which which);
  // Nothing of the last master's life is left.
  Status AwaitGone(const kube::ObjectKey& master);
  Status Annotate(const std::string& job, std::string_view name, const std::string& value);
  // A master that does not run yet obeys nobody.
  Status StopPendingCreates(const std::string& job, const kube::Object& pod,
                            const std::string& reason);

  const std::unique_ptr<kube::Connection> connection_;
  const kube::Timing timing_;
  const std::string ns_;
  kube::Client client_;
};

}  // namespace edl::backend::kubernetes
