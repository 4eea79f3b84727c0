#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/file.h"
#include "base/status.h"
#include "job/volume.h"

// The agent is to this machine what the kubelet is to a node: the ancestor of every process of a
// job, the master's included. It starts and supervises the master, launches and stops replicas on
// the master's word (LocalBackend), keeps exits until they are acknowledged, and leaves nothing
// running when it ends.
namespace edl::backend::local {

// How far the processes of a job are set apart from the rest of the machine.
enum class Isolation {
  kNone,        // a subreaper: it finds and ends every descendant by itself, and mounts nothing
  kNamespaces,  // PID and mount namespaces: when the agent dies, the kernel ends everything
};

struct AgentOptions {
  std::filesystem::path job_dir;  // exists, mode 0700
  // What starts the master; the agent appends --port=N. Searched in PATH if without a slash.
  std::vector<std::string> master_command;
  std::vector<job::Volume> volumes;
  bool detach = false;  // the job goes on when the client is gone

  Isolation at_most = Isolation::kNamespaces;
  // What each log file may hold before it is rotated; one older file is kept.
  int64_t log_limit_bytes = int64_t{64} << 20;
  // What the master, then the replicas, get between SIGTERM and SIGKILL when the job is shut down.
  std::chrono::milliseconds master_grace{5000};
  std::chrono::milliseconds replica_grace{3000};
  // How often, and with which pause, a master whose port is taken is started again.
  int port_tries = 300;
  std::chrono::milliseconds port_pause{1000};
};

// The master exits with it when another process listens on its port.
inline constexpr int kPortTakenCode = 4;
// The environment variable that gives the master its process id as the users of this machine see
// it.
inline constexpr char kHostProcessIdVariable[] = "ELASTICDL_HOST_PROCESS_ID";

// How a job ended.
struct JobEnd {
  int exit_code = 0;   // the master's: 0 succeeded, 1 failed, 2 bad configuration, 3 stopped
  std::string reason;  // for people, empty when the master ended by itself
};

// The client's hold on the agent that it started. Unless detached, the end of its life, like the
// end of the client's, ends the job.
//
// Confined to the thread that started the agent.
class AgentHandle {
 public:
  AgentHandle(AgentHandle&&) = default;
  AgentHandle& operator=(AgentHandle&&) = default;

  pid_t process_id() const { return process_id_; }
  // Polls readable once the agent has ended: for the client's own loop, before Wait().
  int pidfd() const { return pidfd_.get(); }
  // "127.0.0.1:PORT", as in master.addr.
  const std::string& master_address() const { return master_address_; }
  Isolation isolation() const { return isolation_; }

  // Asks the agent to end the job: the master gets SIGTERM, then the replicas. Returns at once; a
  // second call cuts all grace short. Ok if it has ended already.
  Status Shutdown();

  // From now on the job goes on when the client is gone.
  Status Detach();

  // Blocks until the agent has ended, at most once. Unavailable: it died by a signal, and
  // everything with it.
  Result<JobEnd> Wait();

 private:
  friend Result<AgentHandle> StartAgent(const AgentOptions& options);
  AgentHandle() = default;

  pid_t process_id_ = 0;
  FileDescriptor pidfd_;
  FileDescriptor lifeline_;  // its end of life is what the agent notices
  std::string master_address_;
  Isolation isolation_ = Isolation::kNone;
};

// Starts the agent of a job and, through it, the master; returns when the master's command runs.
// After a failure nothing is left running. AlreadyExists: another agent holds this job folder.
// REQUIRES: this process has one thread.
Result<AgentHandle> StartAgent(const AgentOptions& options);

// Whether an agent holds this job folder: whether the job is running.
Result<bool> IsAgentRunning(const std::filesystem::path& job_dir);

// The process of the agent that holds a job folder.
struct AgentProcess {
  pid_t process_id = 0;
  bool stopped = false;  // by SIGSTOP, or by a debugger
};
// NotFound: none is running.
Result<AgentProcess> FindAgent(const std::filesystem::path& job_dir);

// What AgentHandle::Shutdown does, for whoever did not start the agent. NotFound: none is running.
// DeadlineExceeded: the agent did not answer.
Status ShutdownAgent(const std::filesystem::path& job_dir);

}  // namespace edl::backend::local
