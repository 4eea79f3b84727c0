#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "job/job_view.h"

namespace edl::cli {

// Where one job of this machine keeps what it is and was. The names within are a contract with
// the agent and the master (docs/formats/job-folder.md).
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
  // What the master wrote down last; the first view is the client's.
  Result<job::JobView> ReadView() const;
  Status WriteView(const job::JobView& view) const;
  // How the agent says that the job ended, by itself or not. NotFound: it was killed, or runs.
  struct End {
    int exit_code = 0;
    std::string reason;
  };
  Result<End> ReadEnd() const;
  Result<std::string> ReadToken() const;
  Result<std::string> ReadAddress() const;
  // The names that have a log: replicas by name, then the agent and the master.
  std::vector<std::string> LogNames() const;

 private:
  std::filesystem::path path_;
};

// The jobs of this user on this machine: $ELASTICDL_HOME/jobs. Confined.
class JobStore {
 public:
  explicit JobStore(std::filesystem::path home) : home_(std::move(home)) {}

  // Names of all jobs, sorted; none when there is no folder yet.
  Result<std::vector<std::string>> List() const;

  // NotFound names the nearest ones.
  Result<JobFolder> Find(const std::string& name) const;

  // Makes a job's folder with spec, token and first view, or nothing. AlreadyExists: that name is
  // taken.
  Result<JobFolder> Create(const std::string& name, std::string_view spec,
                           const job::JobView& view) const;

  // Removes the folder with all that is in it. REQUIRES: the job does not run.
  Status Remove(const JobFolder& folder) const;

 private:
  std::filesystem::path jobs_dir() const { return home_ / "jobs"; }

  std::filesystem::path home_;
};

}  // namespace edl::cli
