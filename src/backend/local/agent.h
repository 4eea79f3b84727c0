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

// The agent corresponds to the kubelet of a node: it is the ancestor of every process of a job,
// including the master. It starts and supervises the master, launches and stops replicas for the
// master (LocalBackend), keeps exits until they are acknowledged, and leaves no process running
// when it ends.
namespace edl::backend::local {

// How the processes of a job are isolated from the rest of the machine.
enum class Isolation {
  kNone,        // the agent is a subreaper: it finds and kills every descendant itself; no mounts
  kNamespaces,  // PID and mount namespaces: when the agent dies, the kernel kills everything
};

struct AgentOptions {
  std::filesystem::path job_dir;  // exists, mode 0700
  // The command of the master; the agent appends --port=N. Searched in PATH if it has no slash.
  std::vector<std::string> master_command;
  std::vector<job::Volume> volumes;
  bool detach = false;  // the job continues when the client exits
  int master_port = 0;  // 0: any free port

  Isolation at_most = Isolation::kNamespaces;
  // The size at which a log file is rotated; one older file is kept.
  int64_t log_limit_bytes = int64_t{64} << 20;
  // Time between SIGTERM and SIGKILL for the master and then for the replicas, when the job is shut
  // down.
  std::chrono::milliseconds master_grace{5000};
  std::chrono::milliseconds replica_grace{3000};
  // How often, and at which interval, a master whose port is in use is restarted.
  int port_tries = 300;
  std::chrono::milliseconds port_pause{1000};
};

// Exit code of a master whose port is in use by another process.
inline constexpr int kPortTakenCode = 4;
// Environment variable of the master: its process id in the PID namespace of the users.
inline constexpr char kHostProcessIdVariable[] = "ELASTICDL_HOST_PROCESS_ID";

// How a job ended.
struct JobEnd {
  int exit_code = 0;   // the master's: 0 succeeded, 1 failed, 2 bad configuration, 3 stopped
  std::string reason;  // for messages; empty if the master exited without a request
};

// The client's handle of the agent that it started. Unless the job is detached, destroying the
// handle ends the job, and so does the exit of the client.
//
// Confined to the thread that started the agent.
class AgentHandle {
 public:
  AgentHandle(AgentHandle&&) = default;
  AgentHandle& operator=(AgentHandle&&) = default;

  pid_t process_id() const { return process_id_; }
  // Becomes readable when the agent has exited: for the event loop of the client, before Wait().
  int pidfd() const { return pidfd_.get(); }
  // "127.0.0.1:PORT", as in the file master.addr.
  const std::string& master_address() const { return master_address_; }
  Isolation isolation() const { return isolation_; }

  // Requests the end of the job: the master gets SIGTERM, then the replicas. Returns immediately; a
  // second call kills them without grace. Ok if the agent has already exited.
  Status Shutdown();

  // From now on, the job continues when the client exits.
  Status Detach();

  // Blocks until the agent has exited. Call it at most once. Unavailable: a signal killed the agent
  // and thereby all processes of the job.
  Result<JobEnd> Wait();

 private:
  friend Result<AgentHandle> StartAgent(const AgentOptions& options);
  AgentHandle() = default;

  pid_t process_id_ = 0;
  FileDescriptor pidfd_;
  FileDescriptor lifeline_;  // closed when the client exits, which the agent notices
  std::string master_address_;
  Isolation isolation_ = Isolation::kNone;
};

// Starts the agent of a job, which starts the master; returns when the command of the master runs.
// After a failure no process is left. AlreadyExists: another agent holds this job folder. REQUIRES:
// this process has one thread.
Result<AgentHandle> StartAgent(const AgentOptions& options);

// Whether an agent holds this job folder, which means that the job is running.
Result<bool> IsAgentRunning(const std::filesystem::path& job_dir);

// The process of the agent that holds a job folder.
struct AgentProcess {
  pid_t process_id = 0;
  bool stopped = false;  // by SIGSTOP or a debugger
};
// NotFound: no agent is running.
Result<AgentProcess> FindAgent(const std::filesystem::path& job_dir);

// Like AgentHandle::Shutdown, for processes that did not start the agent. NotFound: no agent is
// running. DeadlineExceeded: the agent did not answer.
Status ShutdownAgent(const std::filesystem::path& job_dir);

}  // namespace edl::backend::local
