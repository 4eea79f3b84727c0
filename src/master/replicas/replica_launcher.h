#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "backend/backend.h"
#include "base/mutex.h"
#include "job/job_spec.h"
#include "job/replica.h"
#include "master/replicas/replica_keeper.h"
#include "master/service/loop.h"

namespace edl::master {

// What replicas need besides the job's specification.
struct ReplicaContext {
  std::string master_address;  // "127.0.0.1:23456"
  std::string token_file;
  std::string job_dir;                            // empty: workers cannot reach it
  std::string program = "elasticdl";              // the binary that parameter servers run
  bool on_this_machine = true;                    // false: the backend sets MY_POD_IP
  std::vector<std::string> checkpoint_roots;      // folders that parameter servers may use
  std::string checkpoint_folder;                  // of this job's checkpoints
  std::map<std::string, std::string> master_env;  // that --populate_env_names may pick from
  int ps_http_port = 0;  // where parameter servers serve /metrics; 0: nowhere
};

// Returns what to launch for a command: the job's command in the environment that the tutorials and
// the published packages expect, or a parameter server of ours. `addresses` has the slots of all
// roles if the job needs TF_CONFIG, and those of parameter servers if they are ours.
job::ReplicaSpec MakeReplicaSpec(const LaunchCommand& command, const job::JobSpec& job,
                                 const ReplicaContext& context,
                                 const std::map<job::Role, std::vector<std::string>>& addresses);

// InvalidArgument: its environment is larger than a process can have.
Status CheckEnvironment(const job::ReplicaSpec& spec);

// Carries out the master's commands at the backend, and posts the backend's events, the output of
// replicas and the last lines of failed ones to the master's loop. It has threads of its own
// because a backend may be slow. Commands for one replica keep their order; on this machine, all
// commands do. Another thread reads output. The output of a killed replica is not read: its node
// may not answer any more, and its successor must not wait for that.
//
// Thread-safe.
class ReplicaLauncher {
 public:
  using PostEvent = std::function<void(const job::ReplicaEvent&, std::vector<std::string>)>;
  using PostLog = std::function<void(const std::string& replica, std::string text)>;

  // `backend` and `job` outlive the launcher.
  ReplicaLauncher(backend::Backend& backend, const job::JobSpec& job, ReplicaContext context);
  ~ReplicaLauncher();

  // Starts to watch the backend and to carry out commands.
  void Start(PostEvent post_event, PostLog post_log);
  // Queues the commands and returns. A failed launch is posted as an exit (kNotLaunched); other
  // failures are logged, and the master repeats the command.
  void Do(std::vector<Command> commands);
  // Reads the new output of these replicas, at most twice a second.
  void Scan(std::vector<std::string> replicas);

 private:
  // Run on threads of their own: the commands of one queue; the output of replicas.
  void RunCommands(size_t queue);
  void ReadLogs();
  void Run(const Command& command);
  Status Launch(const LaunchCommand& command);
  void OnEvent(const job::ReplicaEvent& event);
  // Posts the output since the last call.
  void ReadNewOutput(const std::string& replica);
  // True: the replica's output shows the progress of training (chief and evaluator).
  bool LogsProgress(const std::string& replica) const;
  // Returns the end of the output of a replica that failed; empty if too many fail at once.
  std::vector<std::string> LastLinesOf(const std::string& replica);

  backend::Backend& backend_;
  const job::JobSpec& job_;
  const ReplicaContext context_;
  const size_t queue_count_;
  PostEvent post_event_;
  PostLog post_log_;
  std::vector<std::thread> command_threads_;  // one for each queue of queues_
  std::thread reader_;

  Mutex log_mutex_;  // one reader of a replica's output at a time
  std::map<std::string, int64_t> offsets_ GUARDED_BY(log_mutex_);

  // Used by the backend's thread alone.
  std::deque<std::chrono::steady_clock::time_point> tails_read_;

  Mutex mutex_;
  CondVar changed_;
  std::vector<std::deque<Command>> queues_ GUARDED_BY(mutex_);
  std::vector<std::string> scan_ GUARDED_BY(mutex_);
  bool ending_ GUARDED_BY(mutex_) = false;
};

}  // namespace edl::master
