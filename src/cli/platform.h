#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cluster_jobs.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/run_program.h"
#include "base/status.h"
#include "job/job_view.h"
#include "job/volume.h"

namespace edl::cli {

// How a job ended. exit_code is the master's: 0 succeeded, 1 failed, 2 bad configuration or ledger,
// 3 stopped. `reason` is empty when the master ended by itself.
struct JobEnd {
  int exit_code = 0;
  std::string reason;
};

// The hold of whoever started a job on it. Unless detached, the job ends with this object.
class RunningJob {
 public:
  virtual ~RunningJob() = default;
  // Polls readable once the job has ended.
  virtual int end_fd() const = 0;
  virtual const std::string& master_address() const = 0;
  // Ends the job's processes; returns at once. The second call cuts all grace short.
  virtual Status Shutdown() = 0;
  // Blocks until the job has ended, at most once.
  virtual Result<JobEnd> Wait() = 0;
};

struct StartOptions {
  std::filesystem::path job_dir;
  std::vector<job::Volume> volumes;
  bool detach = false;
};

// The backend of this machine, as far as verbs use it.
struct LocalJobs {
  struct Agent {
    int64_t process_id = 0;
    bool stopped = false;
  };
  // REQUIRES: this process has one thread.
  std::function<Result<std::unique_ptr<RunningJob>>(const StartOptions&)> start;
  std::function<Result<bool>(const std::filesystem::path& job_dir)> is_running;
  // NotFound: nothing is running.
  std::function<Status(const std::filesystem::path& job_dir)> shutdown;
  // The process that supervises a running job, and whether it is stopped (SIGSTOP). NotFound: none.
  std::function<Result<Agent>(const std::filesystem::path& job_dir)> find_agent;
  // As Backend::Logs.
  std::function<Result<backend::LogPiece>(const std::filesystem::path& logs_dir,
                                          const std::string& name, int64_t offset, int64_t at_most)>
      read_log;
  // A ledger that no master has open, as JSON.
  std::function<Result<std::string>(const std::filesystem::path& ledger)> read_ledger;
  // What such a ledger knows of its job: state, version and datasets. NotFound: there is none.
  std::function<Result<job::JobView>(const std::filesystem::path& ledger)> read_ledger_view;
};

// What this machine has. 0 of memory or CPUs, -1 GPUs: not known.
struct Machine {
  int64_t memory_bytes = 0;
  int cpus = 0;
  int gpus = -1;
};

struct Terminal {
  bool live = false;  // lines may be overwritten
  bool color = false;
  std::function<size_t()> columns = [] { return size_t{80}; };
};

// All that verbs need of the world outside, put together by apps. What it refers to outlives it.
struct Platform {
  std::ostream& out;
  std::ostream& err;
  const Clock& clock;
  std::filesystem::path home;    // $ELASTICDL_HOME
  std::filesystem::path folder;  // where this was typed
  Terminal terminal;
  Machine machine = {};
  std::function<const char*(const char*)> variable;  // of the environment
  LocalJobs local;
  // The jobs of the cluster that is configured, in this namespace or, for "", in the kubeconfig's;
  // `force_file`: by the kubeconfig even in a pod. NotFound: no cluster is configured.
  std::function<Result<std::unique_ptr<backend::ClusterJobs>>(const std::string& ns,
                                                              bool force_file)>
      cluster;
  // The name of the kubeconfig's current context; empty: there is none.
  std::function<std::string()> cluster_context;
  // As RunProgram; `environment` only adds to this process's.
  std::function<Result<ProgramEnd>(Program)> run;
  // From now on SIGINT, SIGTERM and SIGHUP arrive at this descriptor, as signalfd writes them.
  std::function<Result<FileDescriptor>()> catch_signals;
  // From now on a write to an output that nobody reads fails instead of ending this process.
  std::function<void()> ignore_broken_pipes = [] {};
};

// What the process exits with.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitStopped = 3;
inline constexpr int kExitSignalBase = 128;

// Prints "elasticdl: <message>" and returns the exit code for it.
int Fail(Platform& platform, const Status& status);

}  // namespace edl::cli
