#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "job/role.h"
#include "job/volume.h"

namespace edl::job {

// The largest number of workers of a job, also for `elasticdl scale`.
inline constexpr int kMostWorkers = 100'000;

// A replica for a backend to launch. Its name is never used twice in a job, because it contains the
// id, which numbers the launches of a role.
struct ReplicaSpec {
  std::string name;  // "test-iris-edljob-worker-0"
  Role role = Role::kWorker;
  int index = 0;                           // the slot, which a relaunched replica keeps
  int64_t id = 0;                          // the number of the launch within the role
  std::vector<std::string> command;        // argv, not interpreted by a shell
  std::map<std::string, std::string> env;  // added to the variables that the backend sets
  std::vector<Volume> volumes;
  int64_t memory_limit_bytes = 0;  // 0: none
};

// Why a replica has exited. Only this decides on a relaunch (docs/states/replica.md).
struct ExitCause {
  enum class Kind {
    kSucceeded,    // exit code 0
    kFailed,       // another exit code, or a signal that the program raised (SIGSEGV, SIGABRT, ...)
    kKilled,       // SIGKILL or SIGTERM from outside, except for memory: preempted, deleted
    kOutOfMemory,  // reported by the kernel or the container runtime
    kNotLaunched,  // the backend could not start it
  };
  Kind kind = Kind::kSucceeded;
  int exit_code = 0;    // of a normal exit
  int signal = 0;       // 0: none
  std::string message;  // shown to users: "exit code 3", "killed by SIGKILL"
};
std::string_view NameOf(ExitCause::Kind kind);

// What a backend reports about a replica. An exit is reported again until it is acknowledged.
struct ReplicaEvent {
  enum class Kind {
    kPending,
    kRunning,
    kExited,
    kSynced,  // without a replica: every existing replica has been reported to this watcher
  };
  std::string name;
  Kind kind = Kind::kPending;
  int64_t process_id = 0;  // kRunning: on this machine; 0: none
  std::string host;        // kRunning: the replica's address; empty: this machine
  // kRunning: the backend has lost contact with the node. The replica itself may still run.
  bool node_lost = false;
  ExitCause cause;     // kExited
  std::string reason;  // kPending: why it does not run yet
};

}  // namespace edl::job
