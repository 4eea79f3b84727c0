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

// What the supervisor needs to know of the process that it lives in.
struct Environment {
  int outer_proc = -1;     // /proc of the users' PID namespace
  rlimit open_files{};     // as the client had it
  std::string agent_name;  // unique on this machine, names its cgroup
};

// The processes of a job: the master, started again when a signal ends it, and the replicas, each
// launched once. The calls of Backend arrive here.
//
// Confined to the agent's loop.
class Supervisor {
 public:
  // Loop and clock outlive it.
  Supervisor(EventLoop& loop, const Clock& clock, AgentOptions options, Environment surroundings,
             PortPool ports);

  // Reserves the master's address, "127.0.0.1:PORT", and writes it to master.addr. Call it first.
  Result<std::string> ReserveMasterAddress();
  // Returns when the master's command runs, or cannot.
  Status StartMaster();

  Status Launch(const job::ReplicaSpec& spec);
  Status Stop(const std::string& name, std::chrono::milliseconds grace);
  Status Acknowledge(const std::string& name);
  Result<std::string> AddressOf(job::Role role, int index);

  // What a new watcher is told of every replica, and who is told what comes after.
  std::vector<job::ReplicaEvent> Replicas() const;
  void SetOnEvent(std::function<void(const job::ReplicaEvent&)> on_event);

  // Ends the master, then the replicas, each after its grace; at once when called again.
  void Shutdown(const std::string& reason);
  // Reaps what ended. Call it on SIGCHLD.
  void Reap();

  bool ending() const { return phase_ != Phase::kRunning; }
  // Set when no process of the job is left.
  const std::optional<JobEnd>& end() const { return end_; }

 private:
  enum class Phase { kRunning, kEndingMaster, kEndingReplicas };
  struct Replica {
    job::ReplicaEvent last;
    bool acknowledged = false;
    std::optional<ReplicaProcess> process;  // none: it has ended
    std::filesystem::path cgroup;           // empty: none
    std::string command;
  };

  ProcessSpec MakeProcessSpec(std::string log_name, std::vector<std::string> command) const;
  Status Run(Replica& replica, const job::ReplicaSpec& spec);
  std::filesystem::path MakeCgroup(const job::ReplicaSpec& spec);
  void WarnOfLimits(const std::string& why);
  void OnReplicaReport(const std::string& name);
  void OnReplicaEnd(Replica& replica, job::ExitCause cause);
  job::ExitCause CauseOf(const Replica& replica, int wait_status) const;
  void Tell(Replica& replica, job::ReplicaEvent event);

  Result<ReplicaProcess> RunMaster();
  Status WatchMaster(ReplicaProcess process);
  void RestartMaster();
  void OnMasterReport();
  void OnMasterEnd(int wait_status);
  void OnPortTaken();
  void EndReplicas(int exit_code, const std::string& reason);
  void EndIfNothingIsLeft();
  void EndStraysOf(pid_t lost_shim);

  EventLoop& loop_;
  const Clock& clock_;
  const AgentOptions options_;
  const Environment surroundings_;
  PortPool ports_;
  MemoryCgroups cgroups_;
  Phase phase_ = Phase::kRunning;
  std::optional<ReplicaProcess> master_;
  int master_port_ = 0;
  int port_tries_ = 0;  // since a master could last listen
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
