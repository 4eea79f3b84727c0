#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/resource.h>
#include <sys/types.h>

#include "backend/local/agent.h"
#include "backend/local/memory_cgroup.h"
#include "backend/local/port_pool.h"
#include "backend/local/replica_process.h"
#include "backend/restart_policy.h"
#include "base/clock.h"
#include "base/event_loop.h"
#include "base/status.h"
#include "job/replica.h"

namespace edl::backend::local {

// Properties of the process of the supervisor.
struct Environment {
  int outer_proc = -1;     // /proc of the PID namespace of the users
  rlimit open_files{};     // the limit of the client
  std::string agent_name;  // unique on this machine; names its cgroup
};

// Manages the processes of a job: the master, which is restarted when a signal kills it, and the
// replicas, each launched once. Implements the calls of Backend.
//
// Confined to the agent's loop.
class Supervisor {
 public:
  // Loop and clock outlive this.
  Supervisor(EventLoop& loop, const Clock& clock, AgentOptions options, Environment environment,
             PortPool ports);

  // Reserves the address of the master, "127.0.0.1:PORT", and writes it to master.addr. Call it
  // first.
  Result<std::string> ReserveMasterAddress();
  // Starts the master, and returns when its command runs or has failed to start.
  Status StartMaster();

  Status Launch(const job::ReplicaSpec& spec);
  Status Stop(const std::string& name, std::chrono::milliseconds grace);
  Status Acknowledge(const std::string& name);
  Result<std::string> AddressOf(job::Role role, int index);

  // The last event of every replica, for a new watcher; and the receiver of later events.
  std::vector<job::ReplicaEvent> Replicas() const;
  void SetOnEvent(std::function<void(const job::ReplicaEvent&)> on_event);

  // Ends the master, then the replicas, each after its grace; without grace when called again.
  void Shutdown(const std::string& reason);
  // Reaps ended processes. Call it on SIGCHLD.
  void Reap();

  bool ending() const { return phase_ != Phase::kRunning; }
  // Set when all processes of the job have ended.
  const std::optional<JobEnd>& end() const { return end_; }

 private:
  enum class Phase { kRunning, kEndingMaster, kEndingReplicas };
  struct Replica {
    job::ReplicaEvent last;
    bool acknowledged = false;
    std::optional<ReplicaProcess> process;  // nullopt: it has ended
    std::filesystem::path cgroup;           // may be empty
    std::string command;
  };

  ProcessSpec MakeProcessSpec(std::string log_name, std::vector<std::string> command) const;
  Status Run(Replica& replica, const job::ReplicaSpec& spec);
  std::filesystem::path MakeCgroup(const job::ReplicaSpec& spec);
  void WarnOfLimits(const std::string& why);
  void OnReplicaReport(const std::string& name);
  void OnReplicaEnd(Replica& replica, job::ExitCause cause);
  job::ExitCause CauseOf(const Replica& replica, int wait_status) const;
  void Notify(Replica& replica, job::ReplicaEvent event);

  Result<ReplicaProcess> RunMaster();
  Status WatchMaster(ReplicaProcess process);
  void RestartMaster();
  void OnMasterReport();
  void OnMasterEnd(int wait_status);
  void OnPortInUse();
  void EndReplicas(int exit_code, const std::string& reason);
  void FinishIfAllEnded();
  void KillOrphansOf(pid_t lost_shim);

  EventLoop& loop_;
  const Clock& clock_;
  const AgentOptions options_;
  const Environment environment_;
  PortPool ports_;
  MemoryCgroups cgroups_;
  Phase phase_ = Phase::kRunning;
  std::optional<ReplicaProcess> master_;
  int master_port_ = 0;
  int port_tries_ = 0;  // since a master last listened
  Time master_started_{};
  RestartPolicy restarts_;
  std::map<std::string, Replica> replicas_;
  std::map<std::pair<job::Role, int>, int> slot_ports_;
  std::function<void(const job::ReplicaEvent&)> on_event_;
  bool warned_of_limits_ = false;
  JobEnd ending_;
  std::optional<JobEnd> end_;
};

}  // namespace edl::backend::local
