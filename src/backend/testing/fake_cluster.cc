#include "backend/testing/fake_cluster.h"

namespace edl::backend {

class FakeCluster::Jobs final : public ClusterJobs {
 public:
  explicit Jobs(FakeCluster& cluster) : cluster_(cluster) {}

  std::string Where() const override { return "a cluster of this process, namespace ml"; }

  std::vector<Finding> Check(const Submission& /*submission*/, Depth depth) override {
    cluster_.checks.push_back(depth);
    return cluster_.findings;
  }

  Status Submit(const Submission& submission) override {
    const bool taken = !cluster_.jobs.emplace(submission.job.job_name, submission).second;
    return taken ? AlreadyExists("job {} already exists", submission.job.job_name) : Ok();
  }
  Status Resume(const Submission& submission) override {
    const std::string& name = submission.job.job_name;
    if (cluster_.ended.erase(name) == 0) return FailedPrecondition("job {} is running", name);
    cluster_.jobs[name] = submission;
    return Ok();
  }
  std::string Manifests(const Submission& submission) const override {
    return "name: " + submission.job.job_name + "\n";
  }
  Templates MakeTemplates(const Submission& /*submission*/) const override {
    return cluster_.templates;
  }
  Result<std::string> SpecOf(const std::string& job) override {
    EDL_RETURN_IF_ERROR(Find(job).status());
    return cluster_.jobs.at(job).spec_json;
  }

  Result<ClusterJob> Find(const std::string& job) override {
    EDL_RETURN_IF_ERROR(cluster_.on_find());
    const auto found = cluster_.jobs.find(job);
    if (found == cluster_.jobs.end()) return NotFound("there is no job {}", job);
    return ClusterJob{.name = job,
                      .status_json = found->second.status_json,
                      .running = cluster_.running && !cluster_.ended.contains(job),
                      .trouble = cluster_.trouble};
  }
  Result<std::vector<ClusterJob>> List() override {
    std::vector<ClusterJob> out;
    for (const auto& [name, submission] : cluster_.jobs) out.push_back(*Find(name));
    return out;
  }

  Status Stop(const std::string& job, const std::string& /*reason*/) override {
    if (!cluster_.running) cluster_.left_behind = 0;
    return Find(job).status();
  }
  Status Scale(const std::string& job, int num_workers) override {
    EDL_RETURN_IF_ERROR(Find(job).status());
    cluster_.jobs.at(job).job.num_workers = num_workers;
    return Ok();
  }
  Status Delete(const std::string& job) override {
    cluster_.jobs.erase(job);
    return Ok();
  }

  Result<int> CountRunningPods(const std::string& job) override {
    EDL_RETURN_IF_ERROR(Find(job).status());
    return cluster_.left_behind;
  }
  Result<std::vector<std::string>> Pods(const std::string& job) override {
    EDL_RETURN_IF_ERROR(Find(job).status());
    return std::vector<std::string>{};
  }
  Status ReadLog(const std::string& pod, LogMode /*mode*/, const OnText& /*on_text*/) override {
    return NotFound("there is no pod {}", pod);
  }
  Result<std::vector<ClusterEvent>> Events(const std::string& job) override {
    EDL_RETURN_IF_ERROR(Find(job).status());
    return std::vector<ClusterEvent>{};
  }

 private:
  FakeCluster& cluster_;
};

std::unique_ptr<ClusterJobs> FakeCluster::Connect() { return std::make_unique<Jobs>(*this); }

}  // namespace edl::backend
