#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "telemetry/curves.h"

#include "backend/backend.h"
#include "backend/cluster_jobs.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/run_program.h"
#include "base/status.h"
#include "cli/format.h"
#include "job/job_view.h"
#include "job/volume.h"

namespace edl::cli {

// How a job ended. `exit_code` is the master's (job/master_exit.h). `reason` is empty unless the
// master was ended from outside.
struct JobEnd {
  int exit_code = 0;
  std::string reason;
};

// A job that this process has started. The job ends when this object is destroyed, unless it was
// started with StartOptions::detach.
class RunningJob {
 public:
  virtual ~RunningJob() = default;
  // A descriptor that becomes readable when the job has ended.
  virtual int end_fd() const = 0;
  virtual const std::string& master_address() const = 0;
  // Starts to end the job's processes, and returns at once. The second call kills them without a
  // grace period. NotFound: the job has ended.
  virtual Status Shutdown() = 0;
  // Blocks until the job has ended. May be called once.
  virtual Result<JobEnd> Wait() = 0;
};

struct StartOptions {
  std::filesystem::path job_dir;
  std::vector<job::Volume> volumes;
  bool detach = false;
  int master_port = 0;  // 0: any free port
};

// What verbs use of the local backend.
struct LocalJobs {
  struct Agent {
    int64_t process_id = 0;
    bool stopped = false;
  };
  // REQUIRES: this process has only one thread, because it forks.
  std::function<Result<std::unique_ptr<RunningJob>>(const StartOptions&)> start;
  std::function<Result<bool>(const std::filesystem::path& job_dir)> is_running;
  // As RunningJob::Shutdown, for a job that another process started. NotFound: it does not run.
  std::function<Status(const std::filesystem::path& job_dir)> shutdown;
  // The agent process of a running job, and whether it is stopped (SIGSTOP). NotFound: the job does
  // not run.
  std::function<Result<Agent>(const std::filesystem::path& job_dir)> find_agent;
  // As Backend::Logs.
  std::function<Result<backend::LogPiece>(const std::filesystem::path& logs_dir,
                                          const std::string& name, int64_t offset, int64_t at_most)>
      read_log;
  // The content of a ledger as JSON. REQUIRES: no master has the ledger open.
  std::function<Result<std::string>(const std::filesystem::path& ledger)> read_ledger;
  // State, version and datasets of the job as its ledger records them. NotFound: there is no
  // ledger. REQUIRES: no master has the ledger open.
  std::function<Result<job::JobView>(const std::filesystem::path& ledger)> read_ledger_view;
  // The curves of the job. For errors and requirements see read_ledger_view.
  std::function<Result<telemetry::Curves>(const std::filesystem::path& ledger,
                                          const telemetry::Query& query)>
      read_ledger_curves;
};

// The resources of this machine.
struct Machine {
  int64_t memory_bytes = 0;  // 0: not known
  int cpus = 0;              // 0: not known
  int gpus = -1;             // -1: not known
};

// Where the configuration of the cluster is read from.
enum class ClusterConfig {
  kPodOrFile,  // in a pod the pod's service account, elsewhere the kubeconfig
  kFile,       // the kubeconfig, also in a pod
};

struct Terminal {
  bool live = false;  // a line may be overwritten
  UseColor color = UseColor::kNo;
  std::function<size_t()> columns = [] { return size_t{80}; };
};

// Everything that verbs use outside this module: output, clock, environment, files, backends.
// `apps` fills it for production, testing/fake_platform.h for tests. What it refers to outlives it.
struct Platform {
  std::ostream& out;
  std::ostream& err;
  const Clock& clock;
  std::filesystem::path home;    // $ELASTICDL_HOME
  std::filesystem::path folder;  // the current directory
  Terminal terminal;
  Machine machine = {};
  std::function<const char*(const char*)> variable;  // getenv
  LocalJobs local;
  // The jobs of the configured cluster in namespace `ns`; "": the kubeconfig's namespace.
  // NotFound: no cluster is configured.
  std::function<Result<std::unique_ptr<backend::ClusterJobs>>(const std::string& ns,
                                                              ClusterConfig config)>
      cluster;
  // The name of the kubeconfig's current context; empty: there is none.
  std::function<std::string()> cluster_context;
  // As RunProgram, with this process's environment added to Program::environment.
  std::function<Result<ProgramEnd>(Program)> run;
  // Blocks SIGINT, SIGTERM and SIGHUP and returns a descriptor that delivers them as a signalfd
  // does.
  std::function<Result<FileDescriptor>()> catch_signals;
  // Reads standard input to its end.
  std::function<Result<std::string>()> read_input;
  // Ignores SIGPIPE: a write to a closed pipe then fails instead of ending this process.
  std::function<void()> ignore_broken_pipes = [] {};
};

// Exit codes of the process.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitStopped = 3;
inline constexpr int kExitSignalBase = 128;

// Prints "elasticdl: <message>" to `err` and returns the exit code of a failed verb.
int Fail(Platform& platform, const Status& status);

}  // namespace edl::cli
