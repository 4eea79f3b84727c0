#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "job/job_view.h"

namespace edl::cli {

// The folder of one job on this machine. The agent and the master use the same file names
// (docs/formats/job-folder.md).
class JobFolder {
 public:
  explicit JobFolder(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  std::string name() const { return path_.filename().string(); }
  std::filesystem::path logs() const { return path_ / "logs"; }
  std::filesystem::path ledger() const { return path_ / "ledger.sqlite"; }
  std::filesystem::path spec() const { return path_ / "spec.json"; }

  Result<std::string> ReadSpec() const;
  Status WriteSpec(std::string_view spec) const;
  // The last view that the master wrote; before that, the view that `train` wrote.
  Result<job::JobView> ReadView() const;
  Status WriteView(const job::JobView& view) const;
  // How the job ended, as its agent recorded it.
  struct End {
    int exit_code = 0;
    std::string reason;
  };
  // NotFound: the job runs, or its agent was killed.
  Result<End> ReadEnd() const;
  Result<std::string> ReadToken() const;
  Status WriteToken(std::string_view token) const;
  Result<std::string> ReadAddress() const;
  // The names of all logs: replicas sorted by name, then "agent" and "master".
  std::vector<std::string> LogNames() const;

 private:
  std::filesystem::path path_;
};

// The jobs of this user on this machine: $ELASTICDL_HOME/jobs. Confined.
class JobStore {
 public:
  explicit JobStore(std::filesystem::path home) : home_(std::move(home)) {}

  // The names of all jobs, sorted. Empty if the folder of jobs does not exist yet.
  Result<std::vector<std::string>> List() const;

  // NotFound: the message names jobs with similar names.
  Result<JobFolder> Find(const std::string& name) const;

  // Creates a job's folder with its spec, a token and the first view, atomically. AlreadyExists:
  // the name is taken.
  Result<JobFolder> Create(const std::string& name, std::string_view spec,
                           const job::JobView& view) const;

  // Deletes the folder and everything in it. REQUIRES: the job does not run.
  Status Remove(const JobFolder& folder) const;

 private:
  std::filesystem::path jobs_dir() const { return home_ / "jobs"; }

  std::filesystem::path home_;
};

}  // namespace edl::cli
