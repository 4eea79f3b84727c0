#include "cli/this_machine.h"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "base/run_program.h"
#include "cli/command_check.h"
#include "cli/job_store.h"
#include "cli/machine_capacity.h"
#include "cli/model_check.h"
#include "cli/zoo_program.h"

namespace edl::cli {
namespace {

namespace fs = std::filesystem;
using backend::Finding;
using CheckResult = Finding::CheckResult;

Finding CheckHome(const Platform& platform) {
  Finding finding{.what = "folder of jobs", .detail = platform.home.string() + " is writable"};
  // A missing folder is created, so its nearest existing parent must be writable.
  fs::path folder = platform.home;
  std::error_code error;
  while (!fs::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  if (fs::is_directory(folder, error) && access(folder.c_str(), W_OK | X_OK) == 0) return finding;
  finding.result = CheckResult::kMissing;
  finding.detail = platform.home.string() + " is not writable";
  finding.fix = "set ELASTICDL_HOME to a writable folder";
  return finding;
}

Finding CheckShell() {
  if (access("/bin/bash", X_OK) == 0) return {.what = "/bin/bash", .detail = "exists"};
  return {.result = CheckResult::kMissing,
          .what = "/bin/bash",
          .detail = "does not exist, but it runs --job_command",
          .fix = "install bash"};
}

Finding CheckPython(const Platform& platform) {
  if (const std::optional<fs::path> python = FindProgram("python3", Variable(platform, "PATH"))) {
    return {.what = "python3", .detail = python->string()};
  }
  return {.result = CheckResult::kCannotTell,
          .what = "python3",
          .detail = "not in PATH, which matters if the job runs Python",
          .fix = "install Python, or add its folder to PATH"};
}

Finding CheckData(const job::Volume& volume) {
  const std::string& path = volume.host_path;
  Finding finding{.what = "volume " + (path.empty() ? "claim " + volume.claim_name : path),
                  .detail = "exists"};
  const bool may_create = volume.type == job::HostPathType::kDirectoryOrCreate ||
                          volume.type == job::HostPathType::kFileOrCreate;
  std::error_code error;
  if (path.empty()) {
    finding.detail = "this is a claim in a cluster";
    finding.fix = "give host_path=FOLDER on this machine";
  } else if (fs::exists(path, error) || may_create) {
    return finding;
  } else {
    finding.detail = "does not exist";
    finding.fix = fmt::format("mkdir -p {}, or change host_path in --volume", path);
  }
  finding.result = CheckResult::kMissing;
  return finding;
}

Result<Finding> CheckName(Platform& platform, const job::JobSpec& job) {
  const std::string what = "job name " + job.job_name;
  const Result<JobFolder> folder = JobStore(platform.home).Find(job.job_name);
  if (folder.status().code() == Code::kNotFound) {
    if (!job.resume) return Finding{.what = what, .detail = "it is free"};
    return Finding{.result = CheckResult::kMissing,
                   .what = what,
                   .detail = "there is no such job to resume",
                   .fix = "remove --resume"};
  }
  if (!folder.ok()) return folder.status();
  EDL_ASSIGN_OR_RETURN(const bool running, platform.local.is_running(folder->path()));
  if (!running && job.resume) return Finding{.what = what, .detail = "there is a job to resume"};
  return Finding{
      .result = CheckResult::kMissing,
      .what = what,
      .detail = running ? "a job of this name is running" : "a job of this name exists",
      .fix = running ? fmt::format("choose another name, or `elasticdl stop {}`", job.job_name)
                     : fmt::format("choose another name, or `elasticdl delete {}`, or resume "
                                   "that job with --resume",
                                   job.job_name)};
}

}  // namespace

Result<std::vector<Finding>> CheckThisMachine(Platform& platform, const FlagValues& flags,
                                              const job::JobSpec& job) {
  std::vector<Finding> findings = {CheckHome(platform), CheckShell()};
  const auto add = [&](std::vector<Finding> more) {
    findings.insert(findings.end(), more.begin(), more.end());
  };
  if (job.model) {
    add(CheckModel(platform, job));
  } else if (flags.given("job_command")) {
    add(CheckCommand(platform, job));
  } else {
    findings.push_back(CheckPython(platform));
  }
  for (const job::Volume& volume : job.volumes) findings.push_back(CheckData(volume));
  add(CheckCapacity(platform.machine, flags, job));
  if (flags.given("job_name")) {
    EDL_ASSIGN_OR_RETURN(const Finding name, CheckName(platform, job));
    findings.push_back(name);
  }
  return findings;
}

}  // namespace edl::cli
